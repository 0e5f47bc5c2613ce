"""Compiled formulas of merge_states; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (3*t0)
    t2 = (((12*T) + (e*t1)))
    t3 = (2*C)
    return (T, T, t0, t0, t0, T, t2, 0, 0, 0, (2*T), 0, 0, ((2 + t3)), ((8 + (e*t3))), (((3*T) + t1)), t2)
def f1(T, C, C_2, C_3, e, b_kv):
    t0 = (C*e)
    t1 = (4*T)
    t2 = (T*t0)
    return ((2*T), 0, 0, 0, 0, 0, T, 0, 1, 0, ((8 + (2*t0))), t1, t1, 1, t1, t1, 1, t2, t2, 1, t2, t2, 1, t2, t2, 1, t1, t1, 1)
def f2(T, C, C_2, C_3, e, b_kv):
    return (1, 1)
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (3*T)
    t1 = (C*t0)
    return (((t0 + t1)), (((12*T) + (e*t1))))
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('LSE_a', 'LSE_b', 'O_a', 'O_b', ), ('O', 'LSE', ), (), (), 1, ('!Formulas', ("#", f0, 17), (), (), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'O, LSE of two sets of keys', (), (('LSE_a', False, False, ), ('LSE_b', False, False, ), ('O_a', False, False, ), ('O_b', False, False, ), ('O', False, False, ), ('LSE', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 29), (), (), ()), ('!Formulas', ("#", f2, 2), (), (), ()), (), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
}
