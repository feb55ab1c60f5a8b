"""The archive of finished hands, and requests to have one sent by e-mail."""
