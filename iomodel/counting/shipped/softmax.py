"""Compiled formulas of softmax; written by `python -m tests.support.shipped_formulas`."""
def f0(C, s):
    return (((C + ((-1)*s))),)
def f1(C, s):
    return (C,)
def f2(T, C, C_2, C_3, e, b_kv, s):
    t0 = Minimum(1, (((-1) + s)))
    t1 = (T*t0)
    t2 = (s*t1)
    t3 = (C*T)
    t4 = (((1 + t0))*t3)
    t5 = (2*s)
    t6 = (t1*t5)
    t7 = (4*T)
    t8 = (((4*t3) + t7))
    t9 = (2*t3)
    t10 = ((1 + ((-1)*t0)))
    t11 = (-(-(C)//(s)))
    t12 = (8*s)
    t13 = ((T + t3))
    t14 = ((T + t9))
    t15 = (t10*t14)
    t16 = (T*t5)
    t17 = (((8*t3) + t7))
    t18 = (t10*t17)
    t19 = (T*t12)
    return (((T + t2)), t4, t6, t3, t6, (((4*t4) + (20*t2) + t8)), 0, 0, 0, (((t0*t9) + (t10*t9) + t2)), 0, 0, (((((1 + C))*t10) + (t0*Maximum(0, ((1 + t11 + t5)))))), (((((4 + (4*C)))*t10) + (t0*Maximum(0, ((4 + (4*t11) + t12)))))), (((t0*t13) + t15)), (((((t13 + t16))*t0) + t15)), (((((t14 + t16))*t0) + t15)), (((t0*t8) + t18)), (((((t19 + t8))*t0) + t18)), (((((t17 + t19))*t0) + t18)))
def f3(T, C, C_2, C_3, e, b_kv, s):
    t0 = Minimum(1, (((-1) + s)))
    t1 = ((1 + ((-1)*t0)))
    t2 = (4*C)
    t3 = (4*T)
    t4 = (T*t2)
    t5 = (t1*t4)
    t6 = (-(-(C)//(s)))
    t7 = (T*(-(-(C)//(t6)))*t0*t6)
    t8 = (T*s)
    t9 = (4*t6)
    t10 = (t0*t3)
    t11 = (t0*t4)
    t12 = (8*t8)
    t13 = (t0*t12)
    return ((2*C*T*t1), 0, 0, 0, 0, 0, T, 0, 1, 0, (((4 + t2))*t1), (t1*t3), t3, 1, t5, t4, 1, t5, t4, 1, t7, 0, 0, 0, 0, 0, t8, 0, 1, 0, (((12 + t9))*t0), (s*t10), t3, 1, t11, t4, 1, t13, t12, 1, (((t0*t8) + t7)), 0, 0, 0, 0, 0, T, 0, 1, 0, (((4 + (8*s) + t9))*t0), t10, t3, 1, t13, t12, 1, t11, t4, 1, t11, t4, 1)
def f4(T, C, C_2, C_3, e, b_kv, s):
    return (1, 1, 1, 1, 1, 1)
def f5(T, C, C_2, C_3, e, b_kv):
    t0 = (C*T)
    return (((T + (2*t0))), (((4*T) + (8*t0))))
RECORDS = {
    'requirements ()': (('!CompiledRequirement', 'splits', 'up to {most}, the words', (), ('channels', 'splits', ), ("#", f0, 1), ("#", f1, 1)), ),
    'quantities (00000 (forward, (), elementwise), ())': ('!CompiledQuantities', ('temperature', 'logits', 'partial', ), ('probs', 'partial', ), (), ('splits', ), 3, ('!Formulas', ("#", f2, 20), (), ('splits', ), ()), None),
    'demands (00000 (forward, (), elementwise), ())': ('!Demands', (('!FoldedKernel', 'probs = softmax(logits / temperature)', (), (('temperature', False, False, ), ('logits', False, False, ), ('probs', False, False, ), ), None, False), ('!FoldedKernel', 'largest logits and sums', (), (('temperature', False, False, ), ('logits', False, False, ), ('partial', False, False, ), ), None, False), ('!FoldedKernel', 'probs', (), (('temperature', False, False, ), ('partial', False, False, ), ('logits', False, False, ), ('probs', False, False, ), ), None, False), ), ('!Formulas', ("#", f3, 63), (), ('splits', ), ()), ('!Formulas', ("#", f4, 6), (), ('splits', ), ()), ('splits', ), ()),
    'compulsory (00000 (forward, (), elementwise), ())': ('!Formulas', ("#", f5, 2), (), (), ()),
}
