from .explore_page import explore as explore
