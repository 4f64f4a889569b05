"""x"""
from studies.papers.figure import Paper
PAPER = Paper("kapla","","",{})
