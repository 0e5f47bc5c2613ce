from .element import element as element
from .element import widget as widget
from .explore_page import explore as explore
