"""The policy behind HTTP: steps, scores, a log of finished consultations, and a web page."""
