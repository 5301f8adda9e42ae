"""Score files of any size: rows are read, answered and written in pieces."""

from adacos.batch.files import ScoreSummary, score_file
from adacos.batch.folders import check_folders, score_folder

__all__ = ["ScoreSummary", "check_folders", "score_file", "score_folder"]
