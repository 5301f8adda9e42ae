"""Kernels: functions of arrays, numpy and scipy only. No estimator, no table, no file."""
