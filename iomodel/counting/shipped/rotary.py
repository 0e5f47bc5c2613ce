"""Compiled formulas of rotary; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C, C_2, C_3, e, b_kv):
    t0 = (C_2*T)
    t1 = (C*T)
    t2 = (4*t0)
    t3 = (e*t1)
    return (t0, t1, t1, (((2*t3) + t2)), 0, 0, 0, 0, 0, 0, ((C + C_2)), (((4*C_2) + (C*e))), ((t0 + t1)), ((t2 + t3)))
def f1(T, C, C_2, C_3, e, b_kv):
    t0 = (4*C_2)
    t1 = (C*e)
    t2 = (T*t0)
    t3 = (T*t1)
    return (0, 0, 0, 0, 0, 0, T, 0, 1, 0, ((t0 + t1)), t2, t2, 1, t3, t3, 1, t3, t3, 1)
def f2(T, C, C_2, C_3, e, b_kv):
    return (1, 1)
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (C_2*T)
    t1 = (2*C*T)
    return (((t0 + t1)), (((4*t0) + (e*t1))))
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('angles', 'Q', ), ('Q', ), (), (), 1, ('!Formulas', ("#", f0, 14), (), (), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'rotate Q and K', (), (('angles', False, False, ), ('Q', False, False, ), ('Q', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 20), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
    'quantities (00000 (backward, (), elementwise), ())': ('!CompiledQuantities', ('angles', 'dQ', ), ('dQ', ), (), (), 1, ('!Formulas', ("#", f0, 14), (), (), ()), None),
    'demands (00000 (backward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'rotate dQ and dK back', (), (('angles', False, False, ), ('dQ', False, False, ), ('dQ', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 20), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (backward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
}
