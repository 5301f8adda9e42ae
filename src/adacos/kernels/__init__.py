"""Numeric kernels: functions of arrays on numpy and scipy, without state."""
