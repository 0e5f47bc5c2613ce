"""Compiled formulas of gather_rows; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (2*t0)
    t2 = (((8*T) + (e*t1)))
    return (T, t0, t0, t2, 0, 0, 0, 0, 0, 0, ((1 + C)), ((8 + (C*e))), ((T + t1)), t2)
def f1(T, C, C_2, C_3, e, b_kv):
    t0 = (C*e)
    t1 = (8*T)
    t2 = (T*t0)
    return (0, 0, 0, 0, 0, 0, T, 0, 1, 0, ((8 + t0)), t1, t1, 1, t2, t2, 1, t2, t2, 1)
def f2(T, C, C_2, C_3, e, b_kv):
    return (1, 1)
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (2*C*T)
    return (((T + t0)), (((8*T) + (e*t0))))
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('slots', 'x', ), ('y', ), (), (), 1, ('!Formulas', ("#", f0, 14), (), (), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'y = rows of x, in the order of their experts', (), (('slots', False, False, ), ('x', False, False, ), ('y', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 20), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
}
