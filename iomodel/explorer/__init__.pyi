from .explore import explore as explore
