// Programs that try to get out, to take all there is, or never to end. Each has a control: an innocent program made of the
// same parts, which must work, so that nothing is refused for its looks. Data for hostile.long.test.ts.
import type { Json } from '../../src/kernel/content.ts'

export type Escape = {
  readonly attack: string
  /** What the attack gives back, or the kinds of error it may end with. */
  readonly ends: { readonly value: Json } | { readonly kinds: readonly string[] }
  readonly control: string
  readonly works: Json
}

const raw = String.raw
const value = (of: Json) => ({ value: of })
const kinds = (...names: readonly string[]) => ({ kinds: names })
/** It took too long, or there was not enough memory or stack. */
const BOUNDED = kinds('timeout', 'script_error')
const FAILS = kinds('script_error')
const LIMIT = kinds('limit_exceeded')

const escape = (attack: string, ends: Escape['ends'], control: string, works: Json): Escape => {
  return { attack, ends, control, works }
}

/** What a host may have. Here none of it is, and a program can use the name for itself. */
const HOST_NAMES = [
  'process',
  'require',
  'module',
  'exports',
  'global',
  'Buffer',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'fetch',
  'XMLHttpRequest',
  'WebSocket',
  'Worker',
  'importScripts',
  'postMessage',
  'parentPort',
  'workerData',
  'WebAssembly',
  'navigator',
  'location',
  'document',
  'window',
  'self',
  'Deno',
  'Bun',
  'std',
  'os',
  'bjson',
  'scriptArgs',
  'print',
  'gc',
  'host',
  'Module',
  'HEAPU8',
  'QuickJS',
  'structuredClone',
  'crypto',
  'performance',
  'Atomics',
  'SharedArrayBuffer',
  'WeakRef',
  'FinalizationRegistry',
  'queueMicrotask',
  'Intl',
  'prelude',
] as const

const names = HOST_NAMES.map((name) =>
  escape(
    `return [typeof ${name}, typeof globalThis.${name}, Function('return typeof ${name}')(), (0, eval)('typeof ${name}')]`,
    value(['undefined', 'undefined', 'undefined', 'undefined']),
    `{ const ${name} = 7; return ${name} + 1 }`,
    8,
  ),
)

/** Ways to a constructor of functions, and with it to a global object. */
const CONSTRUCTORS = [
  'Function',
  '(async () => {}).constructor',
  '(function* () {}).constructor',
  '(async function* () {}).constructor',
  'tool_call.constructor',
  'tool_call_batched.constructor',
  'emit.constructor',
  'answer.constructor',
  'console.log.constructor',
  'run.now.constructor',
  'run.random.constructor',
  'Date.constructor',
  'Date.now.constructor',
  'Math.random.constructor',
  '[].map.constructor',
  'Reflect.get(tool_call, "constructor")',
  'Promise.constructor',
  '(class {}).constructor',
  'new Proxy(tool_call, {}).constructor',
  'tool_call.bind().constructor',
  'Symbol.iterator.constructor.constructor',
  '({}).constructor.constructor',
  'globalThis.constructor.constructor',
  'Object.getPrototypeOf(Object.getPrototypeOf(async function () {})).constructor',
  'Error.prototype.constructor.constructor',
  'tool_call("read", {}).then.constructor',
] as const

const constructors = CONSTRUCTORS.map((way) => {
  const call = (body: string): string =>
    `let got = (${way})(${JSON.stringify(body)})()\nif (got && got.next) got = (await got.next()).value\nreturn await got`
  return escape(
    call('return [typeof process, typeof require, typeof host, typeof open, typeof setup].join()'),
    value('undefined,undefined,undefined,undefined,undefined'),
    call('return 40 + 2'),
    42,
  )
})

const callers: readonly Escape[] = [
  escape('return tool_call.caller', FAILS, 'return tool_call.name', 'tool_call'),
  escape('return tool_call.arguments', FAILS, 'return tool_call.length', 2),
  escape(
    'function f() { return f.caller }\nreturn f() ?? null',
    value(null),
    'function f() { return f.name }\nreturn f()',
    'f',
  ),
  escape(
    'return typeof arguments.callee.caller',
    kinds('script_error', 'timeout'),
    'return (function () { return arguments.length })(1, 2)',
    2,
  ),
  escape(
    'return /node:|file:|wasm|worker/.test(new Error("x").stack)',
    value(false),
    'return new Error("x").stack.includes("cell-")',
    true,
  ),
  escape(
    'Error.prepareStackTrace = (error, frames) => frames.map((frame) => typeof frame.getFunction?.())\nconst { stack } = new Error("x")\nreturn Array.isArray(stack) && stack.includes("function")',
    value(false),
    'return typeof new Error("x").stack',
    'string',
  ),
  escape(
    'try { null.x } catch (error) { return typeof error.constructor.constructor("return process")() }',
    FAILS,
    'try { null.x } catch (error) { return error.name }',
    'TypeError',
  ),
  escape(
    'try { tool_call() ; await tool_call("nope") } catch (error) { return error.constructor.constructor("return typeof process")() }',
    value('undefined'),
    'try { await tool_call("nope") } catch (error) { return error.kind }',
    'unknown_capability',
  ),
  escape('return (0, eval)("this").process ?? "none"', value('none'), 'return (0, eval)("this") === globalThis', true),
  escape(
    'return (function () { return typeof this.process })()',
    value('undefined'),
    'return (function () { return this === globalThis })()',
    true,
  ),
]

/** Calls that no run gave: what crosses is checked outside. `bash` is a tool of nobody here. */
const FORGED = '{ type: "call", of: "agent", name: "bash", args: {}, stack: "" }'
const forged: readonly Escape[] = [
  escape(
    `Object.prototype.toJSON = () => (${FORGED})\nawait tool_call("read", { a: 1 })\nreturn 1`,
    BOUNDED,
    'const a = { toJSON: () => ({ b: 2 }) }\nreturn await tool_call("read", a)',
    { b: 2 },
  ),
  escape(
    `Object.prototype.toJSON = function () { return typeof this.type === "string" ? ${FORGED} : this }\nawait tool_call("read", { a: 1 })\nreturn 1`,
    value(1),
    'return JSON.stringify({ a: [1] })',
    '{"a":[1]}',
  ),
  escape(`Array.prototype.toJSON = () => "bent"\nreturn [1]`, value('bent'), 'return [1].concat(2)', [1, 2]),
  escape(
    'Object.prototype.of = "agent"\nObject.prototype.name = "bash"\nawait tool_call()',
    kinds('unknown_capability'),
    'return (await tool_call("read", { of: "agent", name: "bash" })).name',
    'bash',
  ),
  escape(
    'Object.prototype.type = "done"\nreturn await tool_call("read", { a: 1 })',
    value({ a: 1 }),
    'const own = { type: "done" }\nreturn own.type',
    'done',
  ),
  escape(
    `JSON.stringify = () => JSON.raw\nJSON.raw = '{"type":"call","of":"agent","name":"bash"}'\nreturn await tool_call("read", { a: 1 })`,
    value({ a: 1 }),
    'return JSON.parse(JSON.stringify({ a: 1 })).a',
    1,
  ),
  escape(
    'JSON.parse = () => ["bent"]\nreturn await tool_call("read", { a: 1 })',
    value({ a: 1 }),
    'return JSON.parse("[1]")',
    [1],
  ),
  escape(
    'Promise = class { constructor() { this.bent = true } }\nreturn await tool_call("read", { a: 1 })',
    value({ a: 1 }),
    'class Promised extends Promise {}\nreturn await Promised.resolve(3)',
    3,
  ),
  escape('String = () => "bash"\nawait tool_call("nope")', kinds('unknown_capability'), 'return String(12)', '12'),
  escape(
    'Map = Set = WeakMap = WeakSet = Object = null\nreturn await tool_call("read", { a: 1 })',
    value({ a: 1 }),
    'return new Map([[1, 2]]).get(1)',
    2,
  ),
  escape(
    'WeakSet.prototype.has = () => true\nthrow { kind: "ScriptDiverged", message: "mine" }',
    FAILS,
    'return new WeakSet().has({})',
    false,
  ),
  escape(
    'try { await tool_call("nope") } catch (error) { error.kind = "ScriptDiverged"; throw error }',
    FAILS,
    'try { await tool_call("nope") } catch (error) { return error instanceof Error }',
    true,
  ),
  escape(
    'const error = new Error("x"); error.kind = "denied"; throw error',
    FAILS,
    'const error = new Error("x"); error.kind = "mine"; return error.kind',
    'mine',
  ),
  escape(
    'const seen = []\nObject.defineProperty(Object.prototype, "resolve", { set(v) { seen.push(v) }, configurable: true })\nawait tool_call("read", {})\nreturn seen.length',
    value(0),
    'const seen = []\nconst own = { set resolve(v) { seen.push(v) } }\nown.resolve = 1\nreturn seen',
    [1],
  ),
  escape(
    'const seen = []\nObject.defineProperty(Object.prototype, "0", { set(v) { seen.push(v) }, configurable: true })\nawait tool_call("read", {})\nreturn seen.length',
    FAILS,
    'const list = []\nlist[0] = 1\nreturn list',
    [1],
  ),
  escape(
    'const made = Array.prototype[Symbol.iterator]\nconst seen = []\nArray.prototype[Symbol.iterator] = function () { seen.push(this.length); return made.call(this) }\nconst got = await tool_call("read", { a: 1 })\nArray.prototype[Symbol.iterator] = made\nreturn typeof got',
    value('object'),
    'return [...[1, 2]]',
    [1, 2],
  ),
  escape(
    'Function.prototype.call = Function.prototype.apply = () => "bent"\nreturn await tool_call("read", { a: 1 })',
    value({ a: 1 }),
    'return Math.max.apply(null, [1, 2])',
    2,
  ),
  escape(
    'Promise.prototype.then = () => { throw new Error("bent") }\nawait tool_call("read", {})\nreturn 1',
    kinds('script_error'),
    'return await Promise.resolve(1).then((n) => n + 1)',
    2,
  ),
  escape(
    'Object.defineProperty(Promise, Symbol.species, { value: function (run) { run(() => {}, () => {}) } })\nreturn await tool_call("read", { a: 1 }).then((v) => v)',
    value({}),
    'return Promise[Symbol.species] === Promise',
    true,
  ),
  escape(
    'let times = 0\nawait tool_call({ toString: () => (times++ ? "read" : "bash") }, {})',
    kinds('unknown_capability'),
    'return await tool_call({ toString: () => "read" }, { a: 1 })',
    { a: 1 },
  ),
  escape(
    'await tool_call(Symbol("read"), {})',
    kinds('unknown_capability', 'script_error'),
    'return await tool_call("re" + "ad", {})',
    {},
  ),
  escape(
    'await tool_call(["read", "bash"], {})',
    kinds('unknown_capability'),
    'return await tool_call(["read"], { a: 1 })',
    { a: 1 },
  ),
  escape('await tool_call("__proto__", {})', kinds('unknown_capability'), 'return typeof ({}).__proto__', 'object'),
  escape(
    'await tool_call("constructor", {})',
    kinds('unknown_capability'),
    'return typeof ({}).constructor',
    'function',
  ),
  escape(
    'await tool_call("hasOwnProperty", {})',
    kinds('unknown_capability'),
    'return ({ a: 1 }).hasOwnProperty("a")',
    true,
  ),
  escape(
    'await tool_call("script", { script: "1" })',
    kinds('unknown_capability'),
    'const script = "1"\nreturn script',
    '1',
  ),
  escape(
    'await tool_call("agent_query", { task: "x" })',
    kinds('unknown_capability'),
    'return await agent_query("x")',
    { task: 'x' },
  ),
  escape(
    'await tool_call("model_query", { prompt: "x" })',
    kinds('unknown_capability'),
    'return (await model_query("x")).prompt',
    'x',
  ),
  escape('await tool_call("read\\u0000", {})', kinds('unknown_capability'), 'return "a\\u0000b".length', 3),
  escape('await tool_call("ｒead", {})', kinds('unknown_capability'), 'return "ｒead".normalize("NFKC")', 'read'),
  escape(
    'const args = JSON.parse(\'{"__proto__":{"polluted":1}}\')\nawait tool_call("read", args)\nreturn typeof ({}).polluted',
    value('undefined'),
    'return Object.keys(JSON.parse(\'{"__proto__":1}\'))',
    ['__proto__'],
  ),
  escape(
    'const args = { get a() { tool_call("send", {}); return 1 } }\nawait tool_call("read", args)\nreturn 1',
    value(1),
    'return await tool_call("read", { get a() { return 1 } })',
    { a: 1 },
  ),
  escape(
    'await tool_call("read", new Proxy({}, { ownKeys() { throw new Error("mine") } }))',
    FAILS,
    'return await tool_call("read", new Proxy({ a: 1 }, {}))',
    { a: 1 },
  ),
  escape(
    'const a = {}; a.a = a\nawait tool_call("read", a)',
    FAILS,
    'const b = {}\nreturn await tool_call("read", { a: b, c: b })',
    { a: {}, c: {} },
  ),
  escape(
    'await tool_call("read", { toJSON() { for (;;) {} } })',
    BOUNDED,
    'return await tool_call("read", { toJSON: () => ({ a: 1 }) })',
    { a: 1 },
  ),
  escape(
    'const list = []\nfor (let i = 0; i < 2_000; i++) list.push(tool_call("read", { i }).catch((error) => error.kind))\nreturn (await Promise.all(list)).filter((each) => each === "limit_exceeded").length >= 0',
    kinds('limit_exceeded'),
    'return (await Promise.all([1, 2].map((i) => tool_call("read", { i })))).length',
    2,
  ),
]

const bent: readonly Escape[] = [
  escape('Object.freeze(globalThis)\nx = 1\nreturn typeof x', value('undefined'), 'y = 1\nreturn typeof y', 'number'),
  escape(
    'Object.setPrototypeOf(globalThis, new Proxy({}, { has: () => true, get: () => "bent" }))\nreturn 1',
    value(1),
    'return typeof Object.getPrototypeOf(globalThis)',
    'object',
  ),
  escape(
    'Object.defineProperty(globalThis, "x", { get() { throw new Error("mine") }, configurable: true })\nreturn 1',
    value(1),
    'Object.defineProperty(globalThis, "y", { get: () => 4, configurable: true })\nreturn y',
    4,
  ),
  escape(
    'Object.defineProperty(globalThis, "x", { get() { for (;;) {} }, configurable: true })\nreturn 1',
    value(1),
    'const own = { get x() { return 5 } }\nreturn own.x',
    5,
  ),
  escape(
    'with (new Proxy({}, { has: () => true, get: () => () => "bent" })) { var got = tool_call("bash") }\nreturn got',
    value(null),
    'with ({ a: 6 }) { var got = a }\nreturn got',
    6,
  ),
  escape(
    '$scope$((code) => { throw new Error("mine") })\nlet kept = 1\nreturn kept',
    value(1),
    'let kept = 1\nreturn kept',
    1,
  ),
  escape('$scope$ = null\nreturn 2', value(2), 'const scope = null\nreturn scope', null),
  escape(
    '}); tool_call("send", {}); (async function () {',
    value(null),
    'await (async function () { await tool_call("send", {}) })()\nreturn 3',
    3,
  ),
  escape(
    '}); emit("before"); (async function ($scope$) { $scope$(eval); return 4',
    kinds('script_error', 'cancelled'),
    'emit("inside")\nreturn 4',
    4,
  ),
  escape('1)}), tool_call("send", {}), (async function () { return (1', value(1), '((1), (2))', 2),
  escape(
    '1)}), (() => { for (;;) {} })(), (async function () { return (1',
    kinds('timeout', 'script_error'),
    '((1), 3)',
    3,
  ),
  escape('*/ }); emit("x"); /*', FAILS, '/* } */ 5', 5),
  escape('`${}); emit("x")', FAILS, '`${"}"}`', '}'),
  escape('return 1 }); (function () { throw 1', kinds('script_error', 'cancelled'), 'return "});"', '});'),
  escape('import fs from "node:fs"', FAILS, 'const from = "node:fs"\nreturn from', 'node:fs'),
  escape('export const a = 1', FAILS, 'const exported = 1\nreturn exported', 1),
  escape('return import.meta.url', FAILS, 'return ({ meta: 1 }).meta', 1),
  ...['node:fs', 'std', 'os', 'qjs:std', 'qjs:os', './cell.js', 'file:///etc/passwd', 'data:text/javascript,1'].map(
    (name) => escape(`await import(${JSON.stringify(name)})`, FAILS, `return ${JSON.stringify(name)}`, name),
  ),
  escape(
    'return (await Function("return import(\'node:fs\')")()).readFileSync',
    FAILS,
    'return await Function("return Promise.resolve(1)")()',
    1,
  ),
  escape(
    'Object.defineProperty(globalThis, "run", { value: 1, configurable: false })\nreturn 1',
    value(1),
    'const run = 1\nreturn run',
    1,
  ),
  escape('run.now = () => 0\nreturn run.now()', value(1_000), 'const now = run.now\nreturn now()', 1_000),
  escape(
    'console.log = tool_call\nreturn console.log === tool_call',
    value(false),
    'const { log } = console\nreturn typeof log',
    'function',
  ),
  escape(
    'return delete globalThis.undefined',
    value(false),
    'globalThis.mine = 1\nreturn delete globalThis.mine',
    true,
  ),
  escape(
    'undefined = 1; NaN = 2; return typeof undefined',
    value('undefined'),
    'let mine = 1; mine = 2; return mine',
    2,
  ),
]

const memory: readonly Escape[] = [
  escape(
    'const a = []; for (;;) a.push("x".repeat(1_000) + a.length)',
    BOUNDED,
    'const a = []; for (let i = 0; i < 10; i++) a.push(i)\nreturn a.length',
    10,
  ),
  escape(
    'const a = []; for (;;) a.push(new ArrayBuffer(1_000_000))',
    BOUNDED,
    'return new ArrayBuffer(1_000).byteLength',
    1_000,
  ),
  escape(
    'const a = []; for (;;) a.push(new Uint8Array(100_000).fill(1))',
    BOUNDED,
    'return new Uint8Array(3).fill(1).join()',
    '1,1,1',
  ),
  escape('let s = "x"; for (;;) s += s', BOUNDED, 'let s = "x"; s += s\nreturn s', 'xx'),
  escape('return "x".repeat(2 ** 30).length', BOUNDED, 'return "x".repeat(100).length', 100),
  escape('return "x".padEnd(2 ** 30).length', BOUNDED, 'return "x".padEnd(100).length', 100),
  escape('return new Array(2 ** 31).fill(0).length', BOUNDED, 'return new Array(20).fill(0).length', 20),
  escape('return Array(2 ** 32 - 1).join("x").length', BOUNDED, 'return Array(4).join("x")', 'xxx'),
  escape('return Array.from({ length: 2 ** 53 - 1 }).length', BOUNDED, 'return Array.from({ length: 3 }).length', 3),
  escape('return new Uint8Array(2 ** 31).length', BOUNDED, 'return new Uint8Array(8).length', 8),
  escape('const a = []; a[2 ** 32 - 2] = 1; a.sort(); return a.length', BOUNDED, 'return [2, 1].sort()', [1, 2]),
  escape(
    'const a = []; a[2 ** 32 - 2] = 1; a.reverse(); for (;;) a.reverse()',
    BOUNDED,
    'return [1, 2].reverse()',
    [2, 1],
  ),
  escape('const m = new Map(); for (let i = 0; ; i++) m.set(i, {})', BOUNDED, 'return new Map([[1, {}]]).size', 1),
  escape('const s = new Set(); for (let i = 0; ; i++) s.add("k" + i)', BOUNDED, 'return new Set([1, 1]).size', 1),
  escape('const o = {}; for (let i = 0; ; i++) o["k" + i] = i', BOUNDED, 'const o = {}; o.k = 1\nreturn o', { k: 1 }),
  escape('let f = () => 0; for (;;) { const g = f; f = () => g }', BOUNDED, 'const f = () => () => 1\nreturn f()()', 1),
  escape('let o = {}; for (;;) o = { o }', BOUNDED, 'return { o: { o: 1 } }', { o: { o: 1 } }),
  escape(
    'const a = []; for (;;) a.push(new Promise(() => {}))',
    BOUNDED,
    'return (await Promise.all([1, 2])).length',
    2,
  ),
  escape('const a = []; for (;;) a.push(Symbol("s".repeat(100)))', BOUNDED, 'return Symbol("s").description', 's'),
  escape(
    'const a = []; for (;;) a.push((function* () { yield 1 })())',
    BOUNDED,
    'return [...(function* () { yield 1 })()]',
    [1],
  ),
  escape('let x = 3n; for (;;) x = x * x', BOUNDED, 'return String(3n * 3n)', '9'),
  escape('return String(2n ** (2n ** 30n)).length', BOUNDED, 'return String(2n ** 10n)', '1024'),
  escape('return String(1n << (1n << 40n))', BOUNDED, 'return String(1n << 4n)', '16'),
  escape('return new RegExp("a".repeat(2 ** 26)).source.length', BOUNDED, 'return new RegExp("a").test("a")', true),
  escape(
    'return "x".repeat(1e4).replace(/x/g, "$&".repeat(1e5)).length',
    BOUNDED,
    'return "xx".replace(/x/g, "$&$&")',
    'xxxx',
  ),
  escape('return Object.entries("x".repeat(1e8)).length', BOUNDED, 'return Object.entries("xy").length', 2),
  escape(
    'return JSON.stringify(Array(1e7).fill("x".repeat(100))).length',
    BOUNDED,
    'return JSON.stringify(Array(2).fill("x"))',
    '["x","x"]',
  ),
  escape('return [..."x".repeat(1e8)].length', BOUNDED, 'return [..."xy"].length', 2),
  escape('return "x,".repeat(1e8).split(",").length', BOUNDED, 'return "x,y".split(",").length', 2),
]

const stack: readonly Escape[] = [
  escape('function f() { return f() }\nf()', BOUNDED, 'const f = (n) => (n ? f(n - 1) : "end")\nreturn f(20)', 'end'),
  escape(
    'const a = () => b(), b = () => a()\na()',
    BOUNDED,
    'const a = (n) => (n ? b(n - 1) : 0), b = (n) => a(n)\nreturn a(5)',
    0,
  ),
  escape('const o = { get x() { return this.x } }\no.x', BOUNDED, 'const o = { get x() { return 1 } }\nreturn o.x', 1),
  escape(
    'const o = { toString() { return "" + this } }\nreturn "" + o',
    BOUNDED,
    'return "" + { toString: () => "o" }',
    'o',
  ),
  escape('const p = new Proxy({}, { get: (_, k, me) => me[k] })\np.x', BOUNDED, 'return new Proxy({ x: 1 }, {}).x', 1),
  escape(
    'let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {})\nreturn p.x',
    BOUNDED,
    'let p = { x: 2 }; for (let i = 0; i < 5; i++) p = new Proxy(p, {})\nreturn p.x',
    2,
  ),
  escape(
    'let p = {}; for (let i = 0; i < 1e6; i++) p = Object.create(p)\nfor (;;) p.x',
    BOUNDED,
    'return Object.create({ x: 3 }).x',
    3,
  ),
  escape('return JSON.parse("[".repeat(200_000))', FAILS, 'return JSON.parse("[[1]]")', [[1]]),
  escape(
    'return JSON.parse("[".repeat(50_000) + "]".repeat(50_000)).length',
    BOUNDED,
    'return JSON.parse("[".repeat(50) + "]".repeat(50)).length',
    1,
  ),
  escape(
    'let a = []; for (let i = 0; i < 1e6; i++) a = [a]\nreturn JSON.stringify(a).length',
    BOUNDED,
    'let a = []; for (let i = 0; i < 10; i++) a = [a]\nreturn JSON.stringify(a).length',
    22,
  ),
  escape(
    'let a = []; for (let i = 0; i < 500; i++) a = [a]\nreturn a',
    LIMIT,
    'let a = []; for (let i = 0; i < 3; i++) a = [a]\nreturn a',
    [[[[]]]],
  ),
  escape('let a = []; for (let i = 0; i < 500; i++) a = [a]\nanswer(a)', LIMIT, 'answer([[1]])\nreturn 1', 1),
  escape(
    'let a = {}; for (let i = 0; i < 500; i++) a = { a }\nawait tool_call("read", a)',
    LIMIT,
    'return await tool_call("read", { a: { a: {} } })',
    { a: { a: {} } },
  ),
  escape(
    'return new RegExp("(".repeat(1e5) + ")".repeat(1e5)).test("x")',
    BOUNDED,
    'return new RegExp("(((x)))").test("x")',
    true,
  ),
  escape('return eval("[".repeat(1e5) + "]".repeat(1e5)).length', BOUNDED, 'return eval("[[1]]").length', 1),
  escape('return eval("1" + "+1".repeat(1e6))', BOUNDED, 'return eval("1+1+1")', 3),
  escape('return eval("(".repeat(1e5) + "1" + ")".repeat(1e5))', BOUNDED, 'return eval("((1))")', 1),
  escape(
    'const f = (...a) => a.length\nreturn f(...Array(1e7))',
    BOUNDED,
    'const f = (...a) => a.length\nreturn f(...Array(100))',
    100,
  ),
  escape(
    'return String.fromCharCode.apply(null, Array(1e7)).length',
    BOUNDED,
    'return String.fromCharCode.apply(null, [65])',
    'A',
  ),
  escape(
    'return JSON.parse("[1]", function again(k, v) { return JSON.parse("[1]", again) })',
    BOUNDED,
    'return JSON.parse("[1]", (k, v) => v)',
    [1],
  ),
  escape('const sort = () => [2, 1].sort(sort)\nsort()', BOUNDED, 'return [2, 1].sort((a, b) => a - b)', [1, 2]),
  escape(
    'async function f() { await f() }\nawait f()',
    BOUNDED,
    'async function f(n) { if (n) await f(n - 1); return n }\nreturn await f(5)',
    5,
  ),
]

const patterns: readonly Escape[] = [
  escape('return /(a+)+$/.test("a".repeat(40) + "b")', BOUNDED, 'return /(a+)+$/.test("aaa")', true),
  escape('return /(a|aa)+$/.test("a".repeat(60) + "b")', BOUNDED, 'return /(a|aa)+$/.test("aa")', true),
  escape('return /(.*)*x/.test("y".repeat(40))', BOUNDED, 'return /(.*)x/.test("yx")', true),
  escape(
    'return new RegExp("(?:a?){40}a{40}").test("a".repeat(40) + "b".repeat(40) + "a".repeat(39)) && /(x+x+)+y/.test("x".repeat(40))',
    BOUNDED,
    'return /(?:a?){3}a{3}/.test("aaa")',
    true,
  ),
  escape(
    raw`return /^(\w+\s?)*$/.test("word ".repeat(20) + "!")`,
    BOUNDED,
    raw`return /^(\w+\s?)*$/.test("word word")`,
    true,
  ),
  escape(
    raw`return /(x+)\1+\1+$/.test("x".repeat(5_000) + "y") || /(x+x+)+y/.test("x".repeat(40))`,
    BOUNDED,
    raw`return /(x)\1/.test("xx")`,
    true,
  ),
  escape(
    'return /(?<=(a+)+)b$/.test("a".repeat(40) + "c") || /(a+)+$/.test("a".repeat(40) + "c")',
    BOUNDED,
    'return /(?<=a)b/.test("ab")',
    true,
  ),
  escape('const r = /x*/g; for (;;) { r.lastIndex = 0; r.exec("y") }', BOUNDED, 'return "axa".match(/x/g).length', 1),
  escape('return /(?=(a+)+$)a/.test("a".repeat(40) + "b")', BOUNDED, 'return /(?=a)a/.test("a")', true),
  escape(
    raw`return /^(([a-z])+.)+[A-Z]([a-z])+$/.test("a".repeat(40))`,
    BOUNDED,
    raw`return /^[a-z]+[A-Z]$/.test("aA")`,
    true,
  ),
]

const promises: readonly Escape[] = [
  escape('await new Promise(() => {})', FAILS, 'await new Promise((done) => done(1))\nreturn 1', 1),
  escape('await Promise.race([])', FAILS, 'return await Promise.race([1, 2])', 1),
  escape(
    'let done; const p = new Promise((f) => { done = f }); done(p); await p',
    FAILS,
    'let done; const p = new Promise((f) => { done = f }); done(2)\nreturn await p',
    2,
  ),
  escape('for (;;) await null', kinds('timeout'), 'for (let i = 0; i < 100; i++) await null\nreturn 3', 3),
  escape(
    'const again = () => Promise.resolve().then(again)\nawait again()',
    BOUNDED,
    'return await Promise.resolve().then(() => 4)',
    4,
  ),
  escape('await { then(done) { done(this) } }', BOUNDED, 'return await { then(done) { done(5) } }', 5),
  escape('await { then() {} }', FAILS, 'return (await { then: 6 }).then', 6),
  escape(
    'for await (const each of (async function* () { for (;;) yield 1 })());',
    kinds('timeout'),
    'let n = 0; for await (const each of [1, 2]) n += each\nreturn n',
    3,
  ),
  escape(
    'await Promise.all({ *[Symbol.iterator]() { for (;;) yield 1 } })',
    BOUNDED,
    'return await Promise.all(new Set([1]))',
    [1],
  ),
  escape(
    'await Promise.all([tool_call("read", {}), new Promise(() => {})])',
    FAILS,
    'return await Promise.all([tool_call("read", { a: 1 }), 2])',
    [{ a: 1 }, 2],
  ),
  escape(
    'Promise.reject(new Error("unseen"))\nreturn 7',
    value(7),
    'return await Promise.reject(8).catch((n) => n)',
    8,
  ),
  escape(
    'Promise.resolve().then(function again() { return Promise.resolve().then(again) }); return 1',
    kinds('timeout'),
    'Promise.resolve().then(() => {}); return 1',
    1,
  ),
  escape('return { then() { for (;;) {} } }', kinds('timeout'), 'return { then: "text" }.then', 'text'),
  escape(
    'async function* g() { try { yield 1 } finally { for (;;) {} } }\nfor await (const n of g()) break',
    kinds('timeout'),
    'async function* g() { try { yield 1 } finally { emit("end") } }\nfor await (const n of g()) break\nreturn 9',
    9,
  ),
  escape(
    'for (;;) try { await tool_call("nope") } catch {}',
    LIMIT,
    'try { await tool_call("nope") } catch { return "caught" }',
    'caught',
  ),
  escape(
    'try { for (;;) {} } catch { return "caught" } finally { emit("late") }',
    kinds('timeout'),
    'try { throw 1 } catch { return "caught" } finally { emit("end") }',
    'caught',
  ),
]

const clocks: readonly Escape[] = [
  ...[
    'Date.now()',
    'new Date()',
    'Date()',
    'Date.parse("2020")',
    'Date.UTC(2020)',
    'Math.random()',
    'Reflect.construct(Date, [])',
    'new (class extends Date {})()',
    'Date.prototype.constructor.now()',
  ].map((call) =>
    escape(`return ${call}`, FAILS, 'return [typeof run.now(), typeof run.random()]', ['number', 'number']),
  ),
  escape(
    'const from = run.now(); for (let i = 0; i < 1e6; i++); return run.now() - from',
    value(0),
    'return run.now() > 0',
    true,
  ),
  escape(
    'return typeof Object.getOwnPropertyDescriptor(Math, "random").value.call(Math)',
    FAILS,
    'return Math.max(1, 2)',
    2,
  ),
  escape('return Date.prototype.getTime.call({})', FAILS, 'return typeof Date', 'function'),
]

const large: readonly Escape[] = [
  escape(
    'for (let i = 0; i < 10_000; i++) emit("x".repeat(1_000))',
    LIMIT,
    'for (let i = 0; i < 10; i++) emit("x")\nreturn 1',
    1,
  ),
  escape('emit("x".repeat(10_000_000))', LIMIT, 'emit("x".repeat(10_000))\nreturn 1', 1),
  escape(
    'Object.prototype.toJSON = function () { return this.type === "emit" ? { type: "emit", text: ["x".repeat(900_000)] } : this }\nfor (let i = 0; i < 50; i++) emit("x")\nreturn 1',
    value(1),
    'emit({ toJSON: () => ["x"] })\nreturn 1',
    1,
  ),
  escape('return "x".repeat(2_000_000)', LIMIT, 'return "x".repeat(20_000).length', 20_000),
  escape('answer("x".repeat(2_000_000))', LIMIT, 'answer("x")\nreturn 1', 1),
  escape(
    'for (let i = 0; i < 20; i++) globalThis["v" + i + "x".repeat(100_000)] = i\nreturn 1',
    LIMIT,
    'for (let i = 0; i < 20; i++) globalThis["v" + i] = i\nreturn v3',
    3,
  ),
  escape(
    'throw new Error("x".repeat(5_000_000))',
    kinds('limit_exceeded', 'script_error'),
    'try { throw new Error("x".repeat(5_000)) } catch (error) { return error.message.length }',
    5_000,
  ),
  escape(
    'const error = new Error("x"); error.stack = "y".repeat(5_000_000); throw error',
    kinds('limit_exceeded', 'script_error'),
    'const error = new Error("x"); error.stack = "y"; return error.stack',
    'y',
  ),
  escape(
    'await tool_call("read", { a: "x".repeat(2_000_000) })',
    LIMIT,
    'return (await tool_call("read", { a: "x".repeat(200_000) })).a.length',
    200_000,
  ),
  escape(
    'await Promise.all(Array.from({ length: 50 }, () => tool_call("read", { a: "x".repeat(200_000) })))',
    LIMIT,
    'return (await Promise.all(Array.from({ length: 5 }, () => tool_call("read", { a: "x" })))).length',
    5,
  ),
  escape(
    'await tool_call("x".repeat(500_000), {})',
    kinds('unknown_capability'),
    'return "x".repeat(500_000).length',
    500_000,
  ),
  escape('await model_query("x".repeat(2_000_000))', LIMIT, 'return (await model_query("x")).prompt', 'x'),
  escape('return { toJSON() { for (;;) {} } }', kinds('timeout'), 'return { toJSON: () => 1 }', 1),
]

export const ESCAPES: readonly Escape[] = [
  ...names,
  ...constructors,
  ...callers,
  ...forged,
  ...bent,
  ...memory,
  ...stack,
  ...patterns,
  ...promises,
  ...clocks,
  ...large,
]
