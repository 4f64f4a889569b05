"""Schedules by beam searches over what engines take next."""
