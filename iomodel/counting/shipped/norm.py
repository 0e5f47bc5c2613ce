"""Compiled formulas of norm; written by `python -m tests.support.shipped_formulas`."""
def f0(T, s):
    return (((T + ((-1)*s))),)
def f1(T, s):
    return (T,)
def f2(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    t1 = (2*C)
    t2 = (2*t0)
    return (t0, t0, t0, (3*e*t0), 0, 0, 0, 0, 0, 0, t1, (e*t1), ((C + t2)), (((C*e) + (e*t2))))
def f3(T, C, C_2, C_3, e, b_kv):
    t0 = (C*e)
    t1 = (T*t0)
    return (0, 0, 0, 0, 0, 0, T, 0, 1, 0, (2*t0), t1, t1, 1, t1, t0, 1, t1, t1, 1)
def f4(T, C, C_2, C_3, e, b_kv):
    return (1, 1)
def f5(T, C, C_2, C_3, e, b_kv):
    t0 = (2*T)
    t1 = (C*e)
    return (((C + (C*t0))), (((t0*t1) + t1)))
def f6(T, C, C_2, C_3, e, b_kv, s):
    t0 = (C*s)
    t1 = (C*T)
    t2 = (4*T)
    t3 = (C*e)
    t4 = (3*t1)
    t5 = (e*t4)
    t6 = (4*C)
    t7 = ((T + t0 + t4))
    t8 = (((4*t0) + t2 + t5))
    return (t0, t1, t1, T, t0, t1, t0, C, (((8*t0) + (e*t0) + t2 + t3 + t5)), 0, 0, 0, 0, 0, 0, ((1 + t6)), Maximum((8*C), ((4 + (3*t3) + t6))), ((C + t7)), (((2*C) + t7)), ((t3 + t8)), (((2*t3) + t8)))
def f7(T, C, C_2, C_3, e, b_kv, s):
    t0 = (4*C)
    t1 = (C*e)
    t2 = (T*t1)
    t3 = (4*T)
    t4 = (s*t0)
    return (0, 0, 0, 0, 0, 0, s, 0, 1, 0, ((4 + (3*t1) + t0)), (s*t1), t1, 1, t2, t2, 1, t2, t2, 1, t3, t3, 1, t2, t2, 1, t4, t4, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, (8*C), t4, t4, 1, t1, t1, 1)
def f8(T, C, C_2, C_3, e, b_kv, s):
    return (1, 1, 1, 1)
def f9(T, C, C_2, C_3, e, b_kv):
    t0 = (2*C)
    t1 = (3*C*T)
    return (((T + t0 + t1)), (((4*T) + (e*t0) + (e*t1))))
RECORDS = {
    'requirements ()': (('!CompiledRequirement', 'splits', 'up to {most}, the rows', (), ('rows', 'splits', ), ("#", f0, 1), ("#", f1, 1)), ),
    'quantities (00000 (forward, (), elementwise), ((keeps_rstd, False)))': ('!CompiledQuantities', ('x', 'gamma', ), ('y', ), (), (), 1, ('!Formulas', ("#", f2, 14), (), (), ()), None),
    'demands (00000 (forward, (), elementwise), ((keeps_rstd, False)))': ('!Demands', (('!FoldedKernel', 'y = norm(x) * gamma', (), (('x', False, False, ), ('gamma', False, False, ), ('y', False, False, ), ), None, False), ), ('!Formulas', ("#", f3, 20), (), (), ()), ('!Formulas', ("#", f4, 2), (), (), ()), (), ()),
    'compulsory (00000 (forward, (), elementwise), ((keeps_rstd, False)))': ('!Formulas', ("#", f5, 2), (), (), ()),
    'quantities (00000 (backward, (), elementwise), ())': ('!CompiledQuantities', ('gamma', 'dy', 'x', 'rstd', 'dgamma_parts', ), ('dx', 'dgamma_parts', 'dgamma', ), (), ('splits', ), 2, ('!Formulas', ("#", f6, 21), (), ('splits', ), ()), None),
    'demands (00000 (backward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'dx, parts of dgamma', (), (('gamma', False, False, ), ('dy', False, False, ), ('x', False, False, ), ('rstd', False, False, ), ('dx', False, False, ), ('dgamma_parts', False, False, ), ), None, False), ('!FoldedKernel', 'dgamma', (), (('dgamma_parts', False, False, ), ('dgamma', False, False, ), ), None, False), ), ('!Formulas', ("#", f7, 46), (), ('splits', ), ()), ('!Formulas', ("#", f8, 4), (), ('splits', ), ()), ('splits', ), ()),
    'compulsory (00000 (backward, (), elementwise), ((keeps_rstd, False)))': ('!Formulas', ("#", f9, 2), (), (), ()),
}
