// The program that runs in the engine before any cell: the functions of a script, and what is taken away. It is text,
// because it runs inside the engine, where nothing of this process exists. It keeps its own copies of what it uses: a
// script that changes prototypes changes them for itself alone, and limits are counted outside of the engine.

/** Names that a cell cannot keep for the next one: they are restored before each cell. */
const RESERVED = ['context', 'state', 'messages', 'history', 'run', 'answer'] as const

/** What the host function answers instead of the number of a call. */
export const REFUSED = { limit: -1, unknown: -2, ended: -3, large: -4 } as const

/** How much may cross to the thread of the harness at once: more would hold it up. */
export const SIZES = { messageChars: 1024 * 1024, partChars: 4 * 1024 * 1024, nesting: 200 } as const

/**
 * Evaluates to a function of the one host function. Only text crosses: the host function takes JSON and gives a number.
 */
export const PRELUDE = `(function (host) {
'use strict'
const { parse, stringify } = JSON
const { Promise: Later, Error: Failure, Object: Objects, Array: Lists, String: text, WeakSet: Marks } = globalThis
const { defineProperty, getOwnPropertyDescriptor, getOwnPropertyNames, create, freeze } = Objects
const { imul } = Math
const open = create(null)
const tooLarge = stringify({
  type: 'done',
  error: { kind: 'limit_exceeded', name: 'ScriptError', message: 'What the cell gives back has more than ${SIZES.messageChars} characters or ${SIZES.nesting} levels. Return less, and keep the rest in variables.', stack: '' },
  changed: [],
})
let names = [], now = 0, seed = 0, final, before = create(null)

class ScriptError extends Failure {
  constructor(kind, message) { super(message); this.name = 'ScriptError'; this.kind = kind }
}
const own = new Marks()
const failure = (kind, message) => { const made = new ScriptError(kind, message); own.add(made); return made }
const refusals = {
  '${REFUSED.limit}': (what) => failure('limit_exceeded', 'No more ' + what + ' are left in this script session.'),
  '${REFUSED.unknown}': (what, name) => failure('unknown_capability', 'A script cannot call the tool "' + name + '". It can call: ' + (names.join(', ') || 'none') + '.'),
  '${REFUSED.ended}': () => failure('cancelled', 'This cell has ended.'),
  '${REFUSED.large}': () => failure('limit_exceeded', 'The arguments of a call have at most ${SIZES.messageChars} characters and ${SIZES.nesting} levels, and those of calls that are made at once ${SIZES.partChars} characters together.'),
}
const ask = (type, name, args) => new Later((resolve, reject) => {
  const stack = text(new Failure().stack)
  const n = host(stringify({ __proto__: null, type: 'call', of: type, name: text(name), args: args === undefined ? {} : args, stack }))
  if (n < 0) reject(refusals[n](type === 'model' ? 'model calls' : 'tool calls', name))
  else open[n] = { resolve, reject, stack }
})
const one = {
  tool_call: (name, args) => ask('tool', name, args),
  agent_query: (agent, prompt) => ask('agent', 'agent_query', prompt === undefined ? { task: agent } : { agent, task: prompt }),
  model_query: (prompt, options) => ask('model', 'model_query', { ...options, prompt }),
}
const lists = {
  tool_call: (item) => (Lists.isArray(item) ? item : [item.name, item.args]),
  agent_query: (item) => (Lists.isArray(item) ? item : typeof item === 'string' ? [item] : [item.agent, item.prompt]),
  model_query: (item) => (typeof item === 'string' ? [item] : Lists.isArray(item) ? item : [item.prompt, { ...item, prompt: undefined }]),
}
const batched = (name) => (list) => {
  if (!Lists.isArray(list)) return Later.reject(failure('script_error', name + '_batched takes a list.'))
  return Later.all(list.map((item) => one[name](...lists[name](item)).then(
    (value) => ({ ok: true, value }),
    (error) => ({ ok: false, error: { kind: own.has(error) ? error.kind : 'script_error', message: text(error && error.message) } }),
  )))
}
const shown = (value) => {
  if (typeof value === 'string') return value
  const json = stringify(value)
  return json === undefined ? text(value) : json
}
const emit = (...values) => {
  if (host(stringify({ __proto__: null, type: 'emit', text: values.map(shown).join(' ') + '\\n' })) < 0)
    throw failure('limit_exceeded', 'The cell printed too much.')
}
const random = () => {
  seed = (seed + 0x6d2b79f5) | 0
  let mixed = imul(seed ^ (seed >>> 15), 1 | seed)
  mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
}
const clockless = 'A script has no clock of its own, so that it can run again: use run.now(), in ms since 1970.'
const Moment = function Date() { throw failure('script_error', clockless) }
Moment.now = Moment.parse = Moment.UTC = Moment
const chance = () => { throw failure('script_error', 'A script has no randomness of its own, so that it can run again: use run.random().') }
const printing = freeze({ log: emit, info: emit, warn: emit, error: emit, debug: emit })

for (const name of ['SharedArrayBuffer', 'Atomics', 'WeakRef', 'FinalizationRegistry', 'performance', 'queueMicrotask'])
  delete globalThis[name]
globalThis.Date = Moment
Math.random = chance

const builtin = create(null)
for (const name of getOwnPropertyNames(globalThis)) builtin[name] = true
const fixed = create(null)
for (const name of ${JSON.stringify(RESERVED)}) fixed[name] = undefined
fixed.run = freeze({ now: () => now, random })
fixed.answer = (value) => { const json = stringify(value); final = json === undefined ? 'null' : json }
fixed.emit = emit
fixed.console = printing
fixed.show_vars = () => { const vars = create(null); for (const name of kept()) vars[name] = typeof globalThis[name]; return vars }
for (const name of Objects.keys(one)) { fixed[name] = one[name]; fixed[name + '_batched'] = batched(name) }
const isFixed = (name) => name in fixed || name in builtin || name === '$scope$' || name === '$code$'
const kept = () => getOwnPropertyNames(globalThis).filter((name) => !isFixed(name))
const read = (name) => { try { return globalThis[name] } catch { return undefined } }
const restore = () => {
  for (const name in fixed)
    try { defineProperty(globalThis, name, { __proto__: null, value: fixed[name], writable: true, configurable: true, enumerable: false }) }
    catch { throw failure('script_error', 'An earlier cell has locked "' + name + '", so that this script session cannot go on. Begin a new one.') }
}

/** Makes the variables of a cell variables of the session: the same bindings, which its functions go on using. */
const keep = (scope, ids) => {
  const made = []
  for (const id of ids) {
    if (isFixed(id)) continue
    try {
      const get = scope('() => ' + id)
      const known = getOwnPropertyDescriptor(globalThis, id)
      if (known || id in globalThis) {
        const mark = {}
        defineProperty(globalThis, id, { __proto__: null, value: mark, writable: true, configurable: true, enumerable: true })
        const global = get() === mark
        if (known) defineProperty(globalThis, id, known)
        else delete globalThis[id]
        if (global) continue
      } else get()
      const set = scope('($code$) => { ' + id + ' = $code$ }')
      defineProperty(globalThis, id, { __proto__: null, get, set, configurable: true, enumerable: true })
      made.push(id)
    } catch {}
  }
  return made
}
const end = (scope, ids, ended) => {
  const made = scope === undefined ? [] : keep(scope, ids)
  const changed = kept().filter((name) => made.includes(name) || !(name in before) || before[name] !== read(name))
  const told = host(stringify({ __proto__: null, type: 'done', ...ended, final, changed }))
  if (told === ${REFUSED.large}) host(tooLarge)
}
const described = (error) => {
  const isError = error instanceof Failure
  return {
    kind: own.has(error) ? error.kind : 'script_error',
    name: isError ? text(error.name) : 'Error',
    message: isError ? text(error.message) : 'It threw ' + text(typeof error === 'object' ? shown(error) : error),
    stack: isError ? text(error.stack) : '',
  }
}
const segment = (setup) => { now = setup.now; seed = setup.seed }
return {
  begin(setupText, ids, main) {
    const setup = parse(setupText)
    segment(setup)
    names = setup.names
    final = undefined
    for (const n in open) delete open[n]
    restore()
    before = create(null)
    for (const name of kept()) before[name] = read(name)
    let scope
    const all = parse(ids)
    const fail = (error) => {
      let told
      try { told = described(error) } catch { told = { kind: 'script_error', name: 'Error', message: 'It threw something that cannot be shown.', stack: '' } }
      end(scope, all, { error: told })
    }
    const finish = (value) => {
      let json
      try { json = stringify(value) } catch (error) {
        return fail(failure('script_error', 'The value of the cell cannot be JSON: ' + text(error && error.message)))
      }
      end(scope, all, { value: json === undefined ? 'null' : json })
    }
    main((found) => { scope = found }).then(finish, fail)
  },
  deliver(text) {
    const { results, ...setup } = parse(text)
    segment(setup)
    for (const [n, ok, value, kind] of results) {
      const waiting = open[n]
      delete open[n]
      if (!waiting) continue
      if (ok) { waiting.resolve(value); continue }
      const error = failure(kind, value)
      error.stack = waiting.stack
      waiting.reject(error)
    }
  },
}
})`
