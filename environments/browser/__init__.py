"""A headless Chromium that is commanded from here: its pipe, its page, its clock."""
