from iomodel.devices.calibration.calibrate import calibrate as calibrate
from iomodel.devices.device import Hardware as Hardware
from iomodel.devices.device import hardware as hardware
from iomodel.devices.device import list_hardware as list_hardware
from iomodel.studies.judge import judge as judge
from iomodel.timing.parameters import Parameters as Parameters
