"""Names inside the rooms that tests of other rooms use: the one place to edit when such a name moves."""

from iomodel.algorithms._ck_residency import BACKWARD as CK_BACKWARD
from iomodel.algorithms._ck_residency import FORWARD as CK
from iomodel.algorithms._flash3_residency import CUDNN_BACKWARD, CUDNN_FORWARD
from iomodel.algorithms._flash4_residency import BACKWARD as FLASH4_BACKWARD
from iomodel.algorithms._flash4_residency import FORWARD as FLASH4
from iomodel.algorithms._flash4_residency import SPLIT_FORWARD as FLASH4_SPLIT
from iomodel.algorithms._flashinfer_residency import PREFILL as FLASHINFER
from iomodel.algorithms._latent_residency import BLACKWELL as CUTLASS_MLA
from iomodel.algorithms._latent_residency import BY_TRITON as TRITON_MLA
from iomodel.algorithms._latent_residency import HOPPER as FLASHMLA
from iomodel.algorithms._sage_residency import FORWARD as SAGE
from iomodel.algorithms._tiles import SPLITS, shipped_tiles
from iomodel.algorithms._triton_amd_residency import FORWARD as TRITON_AMD
from iomodel.algorithms._triton_residency import FORWARD as TRITON
from iomodel.algorithms._xformers_residency import BACKWARD as XFORMERS_BACKWARD
from iomodel.algorithms._xformers_residency import FORWARD as XFORMERS
from iomodel.algorithms.eager import WARP_ROWS
from iomodel.cli import numbers
from iomodel.cli.app import main
from iomodel.cli.commands import COMMANDS
from iomodel.cli.sweep_command import NO_DASHBOARD, _scheduler
from iomodel.common import derived, labels
from iomodel.common.arithmetic import floor_sum
from iomodel.common.band import Band
from iomodel.common.display import as_text
from iomodel.common.progress import watched
from iomodel.common.quantities import count, quantity
from iomodel.common.units import UnitKind
from iomodel.common.validation import LARGEST
from iomodel.common.yaml_files import LARGEST_FILE, specs_folder
from iomodel.common.yaml_text import dump, parse
from iomodel.counting import folds
from iomodel.counting.bands import Count, Tiled, Visits, query_to_key
from iomodel.counting.bound_call import BoundCall
from iomodel.counting.compiled_algorithm import tally
from iomodel.counting.coverage import View
from iomodel.counting.evaluation.compiled import Compiled
from iomodel.counting.evaluation.integral import integral
from iomodel.counting.expressions import declared
from iomodel.counting.expressions_text import RARE, quick, readable, shared
from iomodel.counting.kinds import FormulaKind, kind_of
from iomodel.counting.mask_kind import CAUSAL, FULL, MaskKind
from iomodel.counting.options import check_options, structural
from iomodel.counting.stacked_terms import stacked
from iomodel.devices.device import as_device, from_data
from iomodel.devices.edits import BANDWIDTH, CAPACITY, UNITS, added, capacity, matrix, scaled
from iomodel.devices.levels import memory_levels
from iomodel.devices.quantity import Group, Quantity
from iomodel.devices.rates import has_rates, rates
from iomodel.errors import AmbiguousNameError, MissingRateError, shown
from iomodel.errors.synonyms import ABSENT, SAME, key, known, meant, same
from iomodel.errors.synonyms import LIKELY as LIKELY_MEANT
from iomodel.integrations.nsight.csv_report import read_csv
from iomodel.nests.alphabet import (
    ALPHABET,
    ATTENTION_TILES,
    GEMM_TILES,
    NUMBERS,
    SCAN_TILES,
    TILE_NAMES,
    TILES,
    WORKLOAD,
)
from iomodel.nests.execution import PIPELINED
from iomodel.nests.feature_names import FEATURE_NAMES, other_of
from iomodel.nests.features import FEATURES
from iomodel.nests.floor_sum_node import FloorSum
from iomodel.nests.front_end import FrontEnd
from iomodel.nests.implementation import DIRECTIONS, TEXTBOOK, ShippedTile
from iomodel.nests.language import Nest, Statement, walk
from iomodel.nests.residency import Fragment, Reused, Shared
from iomodel.nests.symbols import BY_NAME, LETTERS, NAME_OF, H_k, M, N, b, m_1, n_1, stages
from iomodel.placement.contents import contents
from iomodel.placement.gemm_tiles import GemmTile, candidates, fitting
from iomodel.placement.implementations import implementation_for, implementations_for, stand_in
from iomodel.placement.limits import device_of
from iomodel.placement.triton_check import check_triton
from iomodel.placement.triton_launch import compiled_fit, repeats
from iomodel.planning.benchmark_files import read_benchmark
from iomodel.planning.service import as_service
from iomodel.planning.weights import ReplicaWeights
from iomodel.plots.trace_plot import visits
from iomodel.solving.candidates import families
from iomodel.solving.certificate import TIE
from iomodel.solving.parts import parts_for
from iomodel.solving.question import Question
from iomodel.solving.tile_table import tile_tables
from iomodel.studies.comparison import Comparison
from iomodel.timing.compile_work import compiled_demands
from iomodel.timing.kernel_time import DEPENDENT, Launched, Setting, kernel_time
from iomodel.timing.kernel_work import KernelWork
from iomodel.timing.layer_clock import GROUPED, layer_clock
from iomodel.timing.parameters import DEFAULT
from iomodel.timing.shared_memory import WarpLayout
from iomodel.timing.time_shares import time_shares
from iomodel.timing.work_at_point import demands
from iomodel.workloads.call import CACHE_ONLY, KV_QUARTERS, PAIRED, Call, DType, Mask
from iomodel.workloads.dtypes import GGML_BLOCKS, WEIGHT_SIZE
from iomodel.workloads.elementwise import Elementwise
from iomodel.workloads.linear import WEIGHT_QUARTERS
from iomodel.workloads.masks.spans import MaskSpans
from iomodel.workloads.workload import ELEMENT_SIZE
from iomodel.workloads.workload_kinds import KINDS
