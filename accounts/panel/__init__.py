"""The frame of the admin panel: the site, its pages, its operations. What is shown there is in each app's `admin/`."""
