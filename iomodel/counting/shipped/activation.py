"""Compiled formulas of activation; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (2*t0)
    t2 = (e*t1)
    return (t0, t0, t2, 0, 0, 0, t0, 0, 0, C, (C*e), t1, t2)
def f1(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (e*t0)
    return (t0, 0, 0, 0, 0, 0, T, 0, 1, 0, (C*e), t1, t1, 1, t1, t1, 1)
def f2(T, C, C_2, C_3, e, b_kv):
    return (1, 1)
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (2*C*T)
    return (t0, (e*t0))
def f4(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (3*t0)
    t2 = (e*t1)
    t3 = (2*C)
    return (t0, t0, t0, t2, 0, 0, 0, t0, 0, 0, t3, (e*t3), t1, t2)
def f5(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (e*t0)
    return (t0, 0, 0, 0, 0, 0, T, 0, 1, 0, (2*C*e), t1, t1, 1, t1, t1, 1, t1, t1, 1)
def f6(T, C, C_2, C_3, e, b_kv):
    t0 = (3*C*T)
    return (t0, (e*t0))
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('gate', ), ('hidden', ), (), (), 1, ('!Formulas', ("#", f0, 13), (), (), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'act(x)', (), (('gate', False, False, ), ('hidden', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 17), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
    'quantities (00000 (backward, (), elementwise), ())': ('!CompiledQuantities', ('dhidden', 'gate', ), ('dgate', ), (), (), 1, ('!Formulas', ("#", f4, 14), (), (), ()), None),
    'demands (00000 (backward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'dgate', (), (('dhidden', False, False, ), ('gate', False, False, ), ('dgate', False, False, ), ), None, False), ), ('!Formulas', ("#", f5, 20), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (backward, (), elementwise), ())': ('!Formulas', ("#", f6, 2), (), (), ()),
}
