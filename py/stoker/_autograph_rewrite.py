"""AutoGraph, first half: rewrites the syntax tree of a function so that control flow may depend on tensors.

Three passes over a copy of the tree, each simple by itself:

    1. lower    return, break and continue inside blocks become flags; what follows is guarded or moved into `else`
    2. live     which names are read after each statement (backwards over the structured tree: no jumps are left)
    3. rewrite  if, while, for become calls with body functions that share their names by `nonlocal`:

        if a > 0:                      def body(): nonlocal y; y = a
            y = a              ->      def orelse(): nonlocal y; y = -a
        else:                          def get(): return (y,)
            y = -a                     def put(v): nonlocal y; (y,) = v
                                       ag__.if_stmt(a > 0, body, orelse, get, put, ('y',))

Every new node carries the line of the one it replaces and the code is compiled under the file's own name: tracebacks
show the user's lines. What the `ag__` functions do is decided when they run (see _autograph_ops.py).
"""
import ast
import copy

AG = "ag__"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


# Small makers; locations are filled in by fix().

def name(text, store=False):
    return ast.Name(text, ast.Store() if store else ast.Load())


def helper(text):
    return ast.Attribute(name(AG), text, ast.Load())


def call(function, *arguments):
    return ast.Call(helper(function), list(arguments), [])


def thunk(expression):
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), expression)


def assign(target, value):
    return ast.Assign([name(target, True)], value)


def constant(value):
    return ast.Constant(value)


def fix(node, where):
    """Give every new node below `node` the place of `where`; nodes that have one keep it."""
    for child in ast.walk(node):
        if isinstance(child, (ast.stmt, ast.expr, ast.arg, ast.keyword)) and not hasattr(child, "lineno"):
            ast.copy_location(child, where)
    return node


def function(title, body, arguments=(), outer=(), declared_global=()):
    """def title(arguments): nonlocal outer; body"""
    declarations = []
    if outer:
        declarations.append(ast.Nonlocal(sorted(outer)))
    if declared_global:
        declarations.append(ast.Global(sorted(declared_global)))
    args = ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, [])
    made = ast.FunctionDef(title, args, declarations + (body or [ast.Pass()]), [], None)
    made.type_params = []
    return made


# Which names does a piece of code read and bind (not looking into nested scopes for bindings)?

class _Names(ast.NodeVisitor):
    def __init__(self):
        self.reads, self.writes, self.attributes = set(), set(), set()

    def visit_Name(self, node):
        (self.reads if isinstance(node.ctx, ast.Load) else self.writes).add(node.id)

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and not isinstance(node.ctx, ast.Load):
            self.attributes.add((node.value.id, node.attr))
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if isinstance(node.target, ast.Name):
            self.reads.add(node.target.id)

    def _scope(self, node):
        inner = _Names()
        for field in ast.iter_child_nodes(node):
            inner.visit(field)
        self.reads |= inner.reads
        for decorator in getattr(node, "decorator_list", []):
            self.visit(decorator)
        if not isinstance(node, ast.Lambda):
            self.writes.add(node.name)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _scope

    def _comprehension(self, node):
        inner = _Names()
        for field in ast.iter_child_nodes(node):
            inner.visit(field)
        self.reads |= inner.reads
        for child in ast.walk(node):  # a walrus binds outside of the comprehension
            if isinstance(child, ast.NamedExpr):
                self.writes.add(child.target.id)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_ExceptHandler(self, node):
        if node.name:
            self.writes.add(node.name)
        self.generic_visit(node)

    def visit_Import(self, node):
        for item in node.names:
            self.writes.add((item.asname or item.name).split(".")[0])

    visit_ImportFrom = visit_Import

    def visit_MatchAs(self, node):
        if node.name:
            self.writes.add(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs


def names_of(*nodes):
    found = _Names()
    for node in nodes:
        for one in node if isinstance(node, list) else [node]:
            if one is not None:
                found.visit(one)
    return found


def contains(nodes, kinds):
    """Does a block hold a node of these kinds, not looking into nested functions?"""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, kinds):
            return True
        if not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
    return False


def _has_jump(nodes, kinds):
    """The same for break and continue, which belong to the innermost loop."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, kinds):
            return True
        if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
            stack.extend(node.orelse)
        elif not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
    return False


def always_returns(block):
    """Every path through the block ends in return or raise."""
    for node in block:
        if isinstance(node, (ast.Return, ast.Raise)):
            return True
        if isinstance(node, ast.If) and node.orelse and always_returns(node.body) and always_returns(node.orelse):
            return True
        if isinstance(node, ast.With) and always_returns(node.body):
            return True
        if isinstance(node, ast.Try) and (always_returns(node.finalbody) or (
                always_returns(node.body) and all(always_returns(h.body) for h in node.handlers))):
            return True
    return False


# Pass 1: jumps become flags.

class Lowering:
    """Lowers one kind of jump in a block. `leave(node)` gives the statements that replace the jump."""

    def __init__(self, kinds, flags, leave, into_loops):
        self.kinds, self.flags, self.leave, self.into_loops = kinds, flags, leave, into_loops

    def holds(self, node):
        if self.into_loops:
            return contains([node], self.kinds)
        return _has_jump([node], self.kinds)

    def ends(self, block):
        """Every path of the block ends in a jump, so nothing after it runs."""
        for node in block:
            if isinstance(node, self.kinds) or isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
                return True
            if isinstance(node, ast.If) and node.orelse and self.ends(node.body) and self.ends(node.orelse):
                return True
        return False

    def guard(self, block, where):
        tests = [call("not_", name(flag)) for flag in self.flags]
        test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
        return fix(ast.If(test, block, []), where)

    def block(self, nodes):
        done = []
        for n, node in enumerate(nodes):
            rest = nodes[n + 1:]
            if isinstance(node, self.kinds):
                return done + [fix(s, node) for s in self.leave(node)]  # what follows is dead
            if not self.holds(node):
                done.append(node)
                continue
            if isinstance(node, ast.If):
                return done + self._branch(node, rest)
            done.append(self._inside(node))
            if rest:
                done.append(self.guard(self.block(rest), rest[0]))
            return done
        return done

    def _branch(self, node, rest):
        """`if c: jump` + rest is `if c: flag else: rest`: no guard, and both branches define the same names."""
        if rest and self.ends(node.body):
            node.orelse, rest = node.orelse + rest, []
        elif rest and node.orelse and self.ends(node.orelse):
            node.body, rest = node.body + rest, []
        node.body = self.block(node.body)
        node.orelse = self.block(node.orelse)
        return [node] + ([self.guard(self.block(rest), rest[0])] if rest else [])

    def _inside(self, node):
        if isinstance(node, (ast.For, ast.While)):
            node.body = self.block(node.body)
            node.orelse = self.block(node.orelse)
            node.stop = list(getattr(node, "stop", [])) + list(self.flags)
        elif isinstance(node, ast.With):
            node.body = self.block(node.body)
        elif isinstance(node, ast.Try):
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            for handler in node.handlers:
                handler.body = self.block(handler.body)
            node.finalbody = self.block(node.finalbody)
        elif hasattr(ast, "Match") and isinstance(node, ast.Match):
            for case in node.cases:
                case.body = self.block(case.body)
        return node


class Loops(ast.NodeTransformer):
    """break and continue of every loop, innermost first."""

    def __init__(self, fresh):
        self.fresh = fresh

    def _loop(self, node):
        self.generic_visit(node)
        before = []
        if _has_jump(node.body, ast.Continue):
            flag = self.fresh("skip")
            lowering = Lowering(ast.Continue, [flag], lambda _: [assign(flag, constant(True))], False)
            node.body = [fix(assign(flag, constant(False)), node)] + lowering.block(node.body)
        if _has_jump(node.body, ast.Break):
            flag = self.fresh("stop")
            lowering = Lowering(ast.Break, [flag], lambda _: [assign(flag, constant(True))], False)
            node.body = lowering.block(node.body)
            node.stop = [flag]
            before = [fix(assign(flag, constant(False)), node)]
            if node.orelse:
                orelse, node.orelse = node.orelse, []
                return before + [node, lowering.guard(orelse, node)]
        if node.orelse:
            orelse, node.orelse = node.orelse, []
            return before + [node] + orelse
        return before + [node]

    visit_For = visit_While = _loop

    def _leave(self, node):
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _leave


def lower(body, fresh):
    """The body of a function without jumps inside blocks; at most one return, the last statement."""
    holder = ast.Module(body, [])
    Loops(fresh).visit(holder)
    body = holder.body
    inner = [n for n in body if not isinstance(n, ast.Return)]
    if not contains(inner, ast.Return):
        return body
    flag, value = fresh("done"), fresh("value")
    complete = always_returns(body)
    where = body[0]

    def leave(node):
        return [assign(flag, constant(True)), assign(value, node.value or constant(None))]

    lowered = Lowering(ast.Return, [flag], leave, True).block(body)
    start = [fix(assign(flag, constant(False)), where), fix(assign(value, call("undefined_return")), where)]
    end = fix(ast.Return(call("returned", name(value), name(flag), constant(complete))), body[-1])
    return start + lowered + [end]


# Pass 2: which names are read after each statement.

class Liveness:
    """after[id(statement)] = names that may be read once the statement is done."""

    def __init__(self, captured):
        self.after, self.at_head = {}, {}
        self.captured = captured  # read by nested functions, whenever they run

    def block(self, nodes, out):
        live = set(out)
        for node in reversed(nodes):
            live = self.statement(node, live)
        return live

    def statement(self, node, out):
        self.after[id(node)] = self.after.get(id(node), set()) | out | self.captured
        if isinstance(node, ast.If):
            return names_of(node.test).reads | self.block(node.body, out) | self.block(node.orelse, out)
        if isinstance(node, (ast.While, ast.For)):
            return self._loop(node, out)
        if isinstance(node, ast.With):
            uses = names_of(*[i.context_expr for i in node.items]).reads
            bound = names_of(*[i.optional_vars for i in node.items if i.optional_vars]).writes
            return uses | (self.block(node.body, out) - bound)
        if isinstance(node, ast.Try):
            rest = self.block(node.finalbody, out) if node.finalbody else set(out)
            after_body = self.block(node.orelse, rest) | rest
            caught = set(rest)
            for handler in node.handlers:
                caught |= self.block(handler.body, rest) | names_of(handler.type).reads
            return self.block(node.body, after_body | caught) | caught
        found = names_of(node)
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return, ast.FunctionDef)):
            return (out - found.writes) | found.reads
        return out | found.reads

    def _loop(self, node, out):
        flags = set(getattr(node, "stop", []))
        if isinstance(node, ast.While):
            tested, bound = names_of(node.test).reads | flags, set()
        else:
            tested, bound = flags, names_of(node.target).writes
        head = out | tested
        for _ in range(3):  # a structured loop settles after two rounds
            head = out | tested | (self.block(node.body, head) - bound)
        self.at_head[id(node)] = set(head)
        return head | (names_of(node.iter).reads if isinstance(node, ast.For) else set())


# Pass 3: statements and expressions become calls.

class Rewrite(ast.NodeTransformer):
    def __init__(self, fresh, liveness, locals_, globals_, nonlocals, self_name):
        self.fresh, self.live = fresh, liveness
        self.locals, self.globals, self.nonlocals = locals_, globals_, nonlocals
        self.self_name = self_name
        self.hoisted = set()  # names bound inside of body functions: the function itself must bind them too

    # Statements.

    def _shared(self, nodes):
        """Names that body functions bind: declared nonlocal (or global) there."""
        written = names_of(*nodes).writes
        shared = {n for n in written if n in self.locals or n in self.nonlocals}
        self.hoisted |= shared & self.locals
        return shared, written & self.globals

    def _state(self, node, blocks, wanted):
        """The tuple of values that a branch or loop changes: names, and attributes of names it does not rebind."""
        found = names_of(*blocks)
        states = [(n, name(n)) for n in sorted(found.writes & wanted) if n in self.locals or n in self.nonlocals]
        for base, attribute in sorted(found.attributes):
            if base not in found.writes:
                states.append((f"{base}.{attribute}", None))
        return states

    def _accessors(self, states, node):
        """def get(): return (...)   def put(values): ... = values"""
        reads, targets = [], []
        for title, value in states:
            base, dot, attribute = title.partition(".")
            if dot:
                reads.append(call("get_attribute", name(base), constant(attribute)))
                targets.append(ast.Attribute(name(base), attribute, ast.Store()))
            else:
                reads.append(name(title))
                targets.append(name(title, True))
        outer = {t for t, v in states if v is not None}
        get_name, put_name = self.fresh("get"), self.fresh("put")
        get = function(get_name, [ast.Return(ast.Tuple(reads, ast.Load()))])
        body = []
        for n, ((title, value), target) in enumerate(zip(states, targets)):
            element = ast.Subscript(name("values"), constant(n), ast.Load())
            if value is None:
                base, _, attribute = title.partition(".")
                body.append(ast.Expr(call("put_attribute", name(base), constant(attribute), element)))
            else:
                body.append(ast.Assign([target], element))
        put = function(put_name, body, ["values"], outer)
        return [get, put], name(get_name), name(put_name)

    def visit_If(self, node):
        wanted = self.live.after.get(id(node), set())
        states = self._state(node, [node.body, node.orelse], wanted)
        shared, outside = self._shared([node.body, node.orelse])
        test = self.visit(node.test)
        branches = []
        for block, title in ((node.body, "body"), (node.orelse, "orelse")):
            mine = names_of(block).writes
            branches.append(function(self.fresh(title), self.statements(block), (), shared & mine, outside & mine))
        accessors, get, put = self._accessors(states, node)
        done = ast.Expr(call("if_stmt", test, name(branches[0].name), name(branches[1].name), get, put,
                             constant(tuple(t for t, _ in states))))
        return [fix(n, node) for n in branches + accessors + [done]]

    def _loop_states(self, node, blocks):
        wanted = self.live.after.get(id(node), set()) | self.live.at_head.get(id(node), set())
        return self._state(node, blocks, wanted)

    def _stop_test(self, node):
        flags = getattr(node, "stop", [])
        tests = [call("not_", name(f)) for f in flags]
        if not tests:
            return None
        return tests[0] if len(tests) == 1 else call("and_", *[thunk(t) for t in tests])

    def visit_While(self, node):
        states = self._loop_states(node, [node.body])
        shared, outside = self._shared([node.body])
        stop = self._stop_test(node)
        test = self.visit(node.test)
        if stop is not None:
            test = call("and_", thunk(stop), thunk(test))
        tester = function(self.fresh("test"), [ast.Return(test)])
        body = function(self.fresh("body"), self.statements(node.body), (), shared, outside)
        accessors, get, put = self._accessors(states, node)
        done = ast.Expr(call("while_stmt", name(tester.name), name(body.name), get, put,
                             constant(tuple(t for t, _ in states))))
        return [fix(n, node) for n in [tester, body] + accessors + [done]]

    def visit_For(self, node):
        states = self._loop_states(node, [node.body, [ast.Expr(node.target)]])
        shared, outside = self._shared([node.body, [ast.Expr(node.target)]])
        stop = self._stop_test(node)
        item = self.fresh("item")
        bind = fix(ast.Assign([node.target], name(item)), node)
        body = function(self.fresh("body"), [bind] + self.statements(node.body), [item], shared, outside)
        go_on = constant(None) if stop is None else thunk(stop)
        accessors, get, put = self._accessors(states, node)
        done = ast.Expr(call("for_stmt", self.visit(node.iter), go_on, name(body.name), get, put,
                             constant(tuple(t for t, _ in states))))
        return [fix(n, node) for n in [body] + accessors + [done]]

    def statements(self, block):
        done = []
        for node in block:
            made = self.visit(node)
            done += made if isinstance(made, list) else [made]
        return done

    def visit_Assert(self, node):
        message = thunk(self.visit(node.msg)) if node.msg else constant(None)
        return fix(ast.Expr(call("assert_stmt", self.visit(node.test), message)), node)

    def visit_FunctionDef(self, node):
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        if not contains(node.body, (ast.Yield, ast.YieldFrom, ast.Await)):
            rewrite_function(node, self.fresh, self.locals | self.nonlocals)
            node.decorator_list.append(fix(helper("converted"), node))
        return node

    def visit_AsyncFunctionDef(self, node):
        return node

    visit_ClassDef = visit_AsyncFunctionDef

    # Expressions. A walrus binds in the function, which a lambda around it would change: such are left alone.

    def visit_Lambda(self, node):
        inner = copy.copy(self)
        inner.locals = self.locals - {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        node.body = inner.visit(node.body)
        return fix(call("converted", node), node)

    @staticmethod
    def _plain(node):
        return any(isinstance(n, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)) for n in ast.walk(node))

    def visit_BoolOp(self, node):
        if self._plain(node):
            return node
        kind = "and_" if isinstance(node.op, ast.And) else "or_"
        return fix(call(kind, *[thunk(self.visit(v)) for v in node.values]), node)

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return fix(call("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node):
        if self._plain(node):
            return node
        return fix(call("if_exp", self.visit(node.test), thunk(self.visit(node.body)), thunk(self.visit(node.orelse))),
                   node)

    def visit_Compare(self, node):
        simple = all(isinstance(c, (ast.Name, ast.Constant, ast.Attribute)) for c in node.comparators[:-1])
        self.generic_visit(node)
        if len(node.ops) == 1 or not simple or self._plain(node):
            return node
        left, parts = node.left, []
        for operator, right in zip(node.ops, node.comparators):
            parts.append(thunk(ast.Compare(left, [operator], [right])))
            left = copy.deepcopy(right)
        return fix(call("and_", *parts), node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self.self_name:
            node.args = [fix(name("__class__"), node), fix(name(self.self_name), node)]
            return node
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("locals", "globals", "eval", "exec", "super", "vars"):
            return node
        if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == AG:
            return node
        node.args.insert(0, node.func)
        node.func = fix(helper("call"), node)
        return node


def _arguments(args):
    every = args.posonlyargs + args.args + args.kwonlyargs + [args.vararg, args.kwarg]
    return [a.arg for a in every if a is not None]


def _declared(body, kind):
    stack, found = list(body), set()
    while stack:
        node = stack.pop()
        if isinstance(node, kind):
            found |= set(node.names)
        elif not isinstance(node, _SCOPES):
            stack.extend(ast.iter_child_nodes(node))
    return found


def _captured(body):
    """Names that nested functions, lambdas and comprehensions read: live wherever they are called."""
    found = set()
    for node in body:
        for child in ast.walk(node):
            if isinstance(child, (ast.FunctionDef, ast.Lambda)):
                inner = names_of(*(child.body if isinstance(child.body, list) else [child.body]))
                found |= inner.reads - set(_arguments(child.args))
    return found


def rewrite_function(node, fresh, enclosing=frozenset()):
    """Rewrite a FunctionDef in place."""
    body = node.body
    arguments = set(_arguments(node.args))
    globals_, declared = _declared(body, ast.Global), _declared(body, ast.Nonlocal)
    first = node.args.posonlyargs + node.args.args
    captured = _captured(body)  # of the user's own functions, before we make some
    body = lower(body, fresh)
    locals_ = (names_of(body).writes | arguments) - globals_ - declared
    liveness = Liveness(captured | declared)
    liveness.block(body, set())
    rewriter = Rewrite(fresh, liveness, locals_, globals_, declared, first[0].arg if first else None)
    done = rewriter.statements(body)
    head = [n for n in done if isinstance(n, (ast.Global, ast.Nonlocal))]
    docstring = []
    if done and isinstance(done[0], ast.Expr) and isinstance(done[0].value, ast.Constant):
        docstring, done = [done[0]], done[1:]
    unbound = sorted(rewriter.hoisted - arguments)
    start = [fix(assign(n, call("Undefined", constant(n))), body[0]) for n in unbound]
    node.body = docstring + head + start + [n for n in done if n not in head]
    return node


def rewrite_lambda(node, fresh):
    """def of one return; the caller gives it the lambda's arguments and closure."""
    made = function("lambda_", [ast.copy_location(ast.Return(node.body), node.body)])
    made.args = node.args
    fix(made, node)
    return rewrite_function(made, fresh)
