"""Compiled formulas of sample; written by `python -m tests.support.shipped_formulas`."""
def f0(T, C, C_2, C_3, e, b_kv, n_h):
    t0 = (T*n_h)
    t1 = (C*t0)
    t2 = (12*T)
    t3 = (C*T)
    return (T, T, (((2*t1) + t0)), T, (((4*t0) + (8*t1) + t2)), 0, 0, 0, 0, 0, 0, 5, 20, (((3*T) + t3)), (((4*t3) + t2)))
def f1(T, C, C_2, C_3, e, b_kv, n_h):
    t0 = (4*T)
    return (0, 0, 0, 0, 0, 0, T, 0, 1, 0, 20, t0, t0, 1, t0, t0, 1, (8*C*T*n_h), (C*t0), 1, (n_h*t0), t0, 1, t0, t0, 1)
def f2(T, C, C_2, C_3, e, b_kv, n_h):
    return (1, 1)
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    return ((((3*T) + t0)), (((4*t0) + (12*T))))
RECORDS = {
    'requirements ()': (),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('top_k', 'top_p', 'probs', ), ('token', ), (), ('rounds', ), 1, ('!Formulas', ("#", f0, 15), (), ('rounds', ), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'draw tokens', (), (('top_k', False, False, ), ('top_p', False, False, ), ('probs', False, False, ), ('probs', False, False, ), ('token', False, False, ), ), None, False), ), ('!Formulas', ("#", f1, 26), (), ('rounds', ), ()), ('!Formulas', ("#", f2, 2), (), ('rounds', ), ()), ('rounds', ), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f3, 2), (), (), ()),
}
