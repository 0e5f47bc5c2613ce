"""Compiled formulas of add_norm; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (3*C)
    t2 = (3*t0)
    return (t0, t0, t0, t0, t0, (5*e*t0), 0, 0, 0, 0, 0, 0, t1, (e*t1), ((C + t2)), (((C*e) + (e*t2))))
def f1(T, C, C_2, C_3, e, b_kv):
    t0 = (C*e)
    t1 = (T*t0)
    return (0, 0, 0, 0, 0, 0, T, 0, 1, 0, (3*t0), t1, t1, 1, t1, t1, 1, t1, t0, 1, t1, t1, 1, t1, t1, 1)
def f2(T, C, C_2, C_3, e, b_kv):
    return (1, 1)
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (4*T)
    t1 = (C*e)
    return (((C + (C*t0))), (((t0*t1) + t1)))
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('x', 'residual', 'gamma', ), ('residual', 'y', ), (), (), 1, ('!Formulas', ("#", f0, 16), (), (), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'residual += x; y = norm(residual) * gamma', (), (('x', False, False, ), ('residual', False, False, ), ('gamma', False, False, ), ('residual', False, False, ), ('y', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 26), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
}
