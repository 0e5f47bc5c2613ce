"""Compiled formulas of layer_norm; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (3*C)
    t2 = (2*C)
    t3 = (2*t0)
    return (t0, t0, t0, t0, (4*e*t0), 0, 0, 0, 0, 0, 0, t1, (e*t1), ((t2 + t3)), (((e*t2) + (e*t3))))
def f1(T, C, C_2, C_3, e, b_kv):
    t0 = (C*e)
    t1 = (T*t0)
    return (0, 0, 0, 0, 0, 0, T, 0, 1, 0, (3*t0), t1, t1, 1, t1, t0, 1, t1, t0, 1, t1, t1, 1)
def f2(T, C, C_2, C_3, e, b_kv):
    return (1, 1)
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (2*C)
    t1 = (T*t0)
    return (((t0 + t1)), (((e*t0) + (e*t1))))
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('x', 'gamma', 'beta', ), ('y', ), (), (), 1, ('!Formulas', ("#", f0, 15), (), (), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'y = layer_norm(x) * gamma + beta', (), (('x', False, False, ), ('gamma', False, False, ), ('beta', False, False, ), ('y', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 23), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
}
