"""What every service shares: settings, server start and drain, auth, errors, metrics, logs,
channels, sealing.
"""
