"""What operators do: templates, schedules, announcements, tables made and inspected, reopened
shards on record.
"""
