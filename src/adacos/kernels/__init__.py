"""Kernels: functions of arrays by numpy and scipy, or torch. No estimator, no table, no file."""
