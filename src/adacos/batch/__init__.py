"""Score files of any size, or list what to acquire next: rows are read and written in pieces."""

from adacos.batch.files import ScoreSummary, score_file
from adacos.batch.folders import check_folders, score_folder
from adacos.batch.orders import OrderSummary, next_file

__all__ = [
    "OrderSummary",
    "ScoreSummary",
    "check_folders",
    "next_file",
    "score_file",
    "score_folder",
]
