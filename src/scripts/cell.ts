// The engine of one script session. It runs in a thread of its own: its source text is sent there, so it uses nothing
// from outside of the class but what its constructor is given. It counts the limits, where no script can reach them.
import type { QuickJSContext, QuickJSHandle, QuickJSRuntime, QuickJSWASMModule } from 'quickjs-emscripten-core'

export type CellBounds = {
  readonly memoryBytes: number
  readonly stackBytes: number
  /** What a cell prints is kept up to `stdoutChars`. A cell that prints more than `printedChars` has failed. */
  readonly stdoutChars: number
  readonly printedChars: number
  /** A cell whose calls are refused more often than this is ended. */
  readonly refusals: number
  /** What may cross to the thread of the harness: in one message, and in the calls that are made together. */
  readonly messageChars: number
  readonly partChars: number
  /** How deep JSON may be nested. */
  readonly nesting: number
  /** The kinds of errors that a cell can end with by itself. */
  readonly kinds: readonly string[]
}

/** A part of a cell that runs without waiting: its time, its randomness, and how long it may compute. */
export type CellSegment = { readonly now: number; readonly seed: number; readonly computeMs: number }
export type CellResult = readonly [n: number, ok: boolean, value: unknown, kind?: string]
export type CellRequest = CellSegment &
  (
    | {
        readonly type: 'cell'
        readonly cell: number
        readonly code: string
        /** The tools that `tool_call` may call. */
        readonly names: readonly string[]
        readonly left: CallsLeft
      }
    | { readonly type: 'results'; readonly results: readonly CellResult[] }
  )
/** How many calls are left to the script session. */
export type CallsLeft = { readonly model: number; readonly tool: number }

/** A call that a cell wants. `at` is its place in the program, if it is known. */
export type WantedCall = {
  readonly n: number
  readonly of: 'tool' | 'agent' | 'model'
  readonly tool: string
  readonly args: unknown
  readonly at: CellPlace | null
}
export type CellPlace = { readonly cell: number; readonly line: number; readonly column: number }
export type CellFailure = { readonly kind: string; readonly message: string; readonly at: CellPlace | null }
export type CellDone = {
  readonly error?: CellFailure
  readonly value?: unknown
  readonly final?: unknown
  readonly changed: readonly string[]
  readonly stdout: string
}
/** Nothing moves any more: the cell wants calls, or it is done. */
export type CellRest = {
  readonly type: 'rest'
  readonly calls: readonly WantedCall[]
  readonly done: CellDone | null
  readonly left: CallsLeft
  readonly ms: number
}
/** The engine cannot go on: what its variables are is not known. */
export type CellEnded = { readonly type: 'ended'; readonly error: CellFailure; readonly ms: number }

type HostMessage =
  | {
      readonly type: 'call'
      readonly of: WantedCall['of']
      readonly name: string
      readonly args: unknown
      readonly stack: string
    }
  | { readonly type: 'emit'; readonly text: string }
  | {
      readonly type: 'done'
      readonly value?: string
      readonly final?: string
      readonly error?: {
        readonly kind: string
        readonly name: string
        readonly message: string
        readonly stack: string
      }
      readonly changed: readonly string[]
    }

type CellEngineOptions = {
  /** The module of the package. Its type stays in here, so that nobody needs the package for the types of this one. */
  readonly quickjs: object
  readonly prelude: string
  readonly bounds: CellBounds
  readonly refused: Readonly<Record<'limit' | 'unknown' | 'ended' | 'large', number>>
  /** In ms. Only differences count. */
  readonly clock: () => number
}

export class CellEngine {
  readonly #runtime: QuickJSRuntime
  readonly #context: QuickJSContext
  readonly #options: CellEngineOptions
  readonly #begin: QuickJSHandle
  readonly #deliver: QuickJSHandle
  #deadline = Number.POSITIVE_INFINITY
  #broken: CellFailure | null = null
  /** What its variables are is not known any more. */
  #isOver = false
  #cell = 0
  #n = 0
  #calls: WantedCall[] = []
  #waiting = 0
  #done: CellDone | null = null
  #stdout = ''
  #printed = 0
  #names: ReadonlySet<string> = new Set()
  #left = { model: 0, tool: 0 }
  #refused = 0
  /** How much the calls of this part have in their arguments. */
  #chars = 0
  /** While a program is compiled none of it may run: a program could close the function that is put around it. */
  #isCompiling = false

  constructor(options: CellEngineOptions) {
    const { quickjs, bounds, clock, prelude } = options
    this.#options = options
    const interruptHandler = (): boolean => this.#broken !== null || clock() > this.#deadline
    this.#runtime = (quickjs as QuickJSWASMModule).newRuntime({ interruptHandler })
    this.#runtime.setMemoryLimit(bounds.memoryBytes)
    this.#runtime.setMaxStackSize(bounds.stackBytes)
    this.#context = this.#runtime.newContext()
    const context = this.#context
    const host = context.newFunction('host', (message) => context.newNumber(this.#host(context.getString(message))))
    const made = context.unwrapResult(context.evalCode(prelude, 'prelude.js', { type: 'global' }))
    const functions = context.unwrapResult(context.callFunction(made, context.undefined, host))
    this.#begin = context.getProp(functions, 'begin')
    this.#deliver = context.getProp(functions, 'deliver')
    for (const handle of [host, made, functions]) handle.dispose()
  }

  /**
   * Runs each request until nothing moves, up to one that is the last of its cell or of the engine. It gives fewer than
   * it was asked for when they are large. Only text crosses from one thread to the other.
   */
  run(text: string): string {
    const told: string[] = []
    let chars = 0
    for (const request of JSON.parse(text) as readonly CellRequest[]) {
      const outcome = this.#runUntilRest(request)
      told.push(outcome)
      chars += outcome.length
      if (this.#isOver || this.#done !== null || chars > this.#options.bounds.partChars) break
    }
    return `[${told.join(',')}]`
  }

  #runUntilRest(request: CellRequest): string {
    const from = this.#options.clock()
    this.#deadline = from + request.computeMs
    this.#calls = []
    this.#chars = 0
    let error: CellFailure | null
    try {
      error = request.type === 'cell' ? this.#start(request) : this.#resume(request)
      error ??= this.#drain()
    } catch (thrown) {
      // The WebAssembly itself failed: nothing of it can be used any more.
      error = { kind: 'script_error', message: `The engine broke: ${String(thrown)}`.slice(0, 300), at: null }
    }
    const ms = Math.max(0, Math.round(this.#options.clock() - from))
    error = this.#broken ?? error
    this.#isOver = error !== null
    if (error !== null) return JSON.stringify({ type: 'ended', error, ms })
    this.#waiting += this.#calls.length
    if (this.#done === null && this.#waiting === 0) {
      const message = 'There is nothing left to wait for: the cell awaits a promise that never settles.'
      this.#done = { error: { kind: 'script_error', message, at: null }, changed: [], stdout: this.#stdout }
    }
    // A call that nothing waited for when the cell ended is not made.
    const calls = this.#done === null ? this.#calls : []
    return JSON.stringify({ type: 'rest', calls, done: this.#done, left: this.#left, ms })
  }

  #start({ cell, code, names, left, now, seed }: Extract<CellRequest, { type: 'cell' }>): CellFailure | null {
    this.#cell = cell
    this.#n = 0
    this.#waiting = 0
    this.#done = null
    this.#stdout = ''
    this.#printed = 0
    this.#refused = 0
    this.#names = new Set(names)
    this.#left = { ...left }
    const context = this.#context
    this.#isCompiling = true
    const main = this.#compile(code)
    this.#isCompiling = false
    if ('error' in main) {
      this.#done = { error: main.error, changed: [], stdout: '' }
      return null
    }
    const ids = [...new Set(code.match(/[\p{ID_Start}$_][\p{ID_Continue}$]*/gu) ?? [])]
    const setup = context.newString(JSON.stringify({ now, seed, names }))
    const found = context.newString(JSON.stringify(ids))
    const called = context.callFunction(this.#begin, context.undefined, setup, found, main.handle)
    for (const handle of [setup, found, main.handle]) handle.dispose()
    return called.error ? this.#thrown(called.error) : null
  }

  #resume({ now, seed, results }: Extract<CellRequest, { type: 'results' }>): CellFailure | null {
    this.#waiting -= results.length
    const context = this.#context
    const all = context.newString(JSON.stringify({ now, seed, results }))
    const called = context.callFunction(this.#deliver, context.undefined, all)
    all.dispose()
    return called.error ? this.#thrown(called.error) : null
  }

  /** One expression is the value of its cell. Anything else is the body of an async function. */
  #compile(code: string): { readonly handle: QuickJSHandle } | { readonly error: CellFailure } {
    const file = `cell-${this.#cell}.js`
    const head = '(async function ($scope$) { $scope$(($code$) => eval($code$));'
    const isDeclared = /^(?:\s|\/\/[^\n]*\n|\/\*[^]*?\*\/)*(?:(?:async\s+)?function\b|class\b|\{)/.test(code)
    if (!isDeclared) {
      const expression = this.#context.evalCode(`${head} return (\n${code}\n)})`, file, { type: 'global' })
      if (!expression.error) return { handle: expression.value }
      expression.error.dispose()
    }
    const body = this.#context.evalCode(`${head}\n${code}\n})`, file, { type: 'global' })
    return body.error ? { error: this.#thrown(body.error) } : { handle: body.value }
  }

  #drain(): CellFailure | null {
    while (this.#runtime.hasPendingJob()) {
      const ran = this.#runtime.executePendingJobs(1_000)
      if (ran.error) return this.#thrown(ran.error)
      if (this.#options.clock() > this.#deadline) return this.#late()
      if (this.#broken !== null) return this.#broken
    }
    return null
  }

  /** An error that no program caught: the engine was interrupted, or is out of memory. */
  #thrown(handle: QuickJSHandle): CellFailure {
    const dumped = this.#context.dump(handle) as Readonly<Record<string, unknown>> | string
    handle.dispose()
    const told = typeof dumped === 'object' && dumped !== null ? dumped : { message: String(dumped) }
    if (told['message'] === 'interrupted') return this.#broken ?? this.#late()
    const { name = 'Error', message = '', stack = '' } = told
    return this.#failure('script_error', String(name), String(message), String(stack))
  }

  #late(): CellFailure {
    return { kind: 'timeout', message: 'The cell computed for too long without waiting for a call.', at: null }
  }

  #failure(kind: string, name: string, message: string, stack: string): CellFailure {
    const said =
      kind === 'script_error' && name !== 'ScriptError' ? `${name}: ${message}${this.#hint(name, message)}` : message
    return { kind, message: said.slice(0, 2_000), at: this.#placeIn(stack) }
  }

  #hint(name: string, message: string): string {
    const missing = name === 'ReferenceError' ? /^'?(\w+)'? is not defined/.exec(message)?.[1] : undefined
    const outer = [
      'fetch',
      'require',
      'process',
      'setTimeout',
      'setInterval',
      'setImmediate',
      'Buffer',
      'module',
      'window',
    ]
    const known = missing !== undefined && outer.includes(missing)
    return known ? `. A script reaches nothing but its tools: use tool_call(name, args).` : ''
  }

  /** The first place of the stack that is in a cell. The program begins on the second line of what was compiled. */
  #placeIn(stack: string): CellPlace | null {
    const [, cell, line, column] = /cell-(\d+)\.js:(\d+)(?::(\d+))?/.exec(stack) ?? []
    if (cell === undefined || line === undefined) return null
    return { cell: Number(cell), line: Math.max(1, Number(line) - 1), column: Number(column ?? 1) }
  }

  /**
   * The one function that a script session reaches. It gives a number; negative ones are refusals. A script may have
   * bent what the prelude is made of, so nothing in the text is taken for granted.
   */
  #host(text: string): number {
    const { refused, bounds } = this.#options
    if (this.#done !== null || this.#isCompiling) return refused.ended
    if (text.length > bounds.messageChars || this.#isTooDeep(text)) return refused.large
    const message = JSON.parse(text) as HostMessage
    if (message.type === 'call') return this.#call(message, text.length)
    if (message.type === 'emit') return this.#print(String(message.text))
    return this.#end(message)
  }

  #call({ of, name, args = {}, stack }: Extract<HostMessage, { type: 'call' }>, chars: number): number {
    const { refused, bounds } = this.#options
    const kind = of === 'model' || of === 'agent' ? of : 'tool'
    const tool = kind === 'tool' ? String(name) : `${kind}_query`
    const counter = kind === 'model' ? 'model' : 'tool'
    const isUnknown = kind === 'tool' && !this.#names.has(tool)
    const isLarge = this.#chars + chars > bounds.partChars
    if (isUnknown || isLarge || this.#left[counter] <= 0) {
      this.#refused += 1
      const message = `More than ${bounds.refusals} calls of this cell were refused.`
      if (this.#refused > bounds.refusals) this.#broken = { kind: 'limit_exceeded', message, at: this.#placeIn(stack) }
      return isUnknown ? refused.unknown : isLarge ? refused.large : refused.limit
    }
    this.#left[counter] -= 1
    this.#chars += chars
    const n = this.#n
    this.#n += 1
    this.#calls.push({ n, of: kind, tool, args, at: this.#placeIn(stack) })
    return n
  }

  /** The thread of the harness reads it by functions that call themselves for each level. */
  #isTooDeep(text: string): boolean {
    const { nesting } = this.#options.bounds
    // Each level has at least two characters.
    if (text.length < 2 * nesting) return false
    let depth = 0
    for (const mark of text.match(/"(?:[^"\\]|\\.)*"|[[\]{}]/g) ?? []) {
      if (mark === '[' || mark === '{') depth += 1
      else if (mark === ']' || mark === '}') depth -= 1
      if (depth > nesting) return true
    }
    return false
  }

  #print(text: string): number {
    const { stdoutChars, printedChars } = this.#options.bounds
    this.#printed += text.length
    this.#stdout += text.slice(0, Math.max(0, stdoutChars - this.#stdout.length))
    return this.#printed > printedChars ? this.#options.refused.limit : 0
  }

  #end({ value = 'null', final, error, changed: given }: Extract<HostMessage, { type: 'done' }>): number {
    const stdout = this.#stdout
    if (this.#isTooDeep(value) || this.#isTooDeep(final ?? '')) return this.#options.refused.large
    const answer = final === undefined ? {} : { final: JSON.parse(final) as unknown }
    const changed = Array.isArray(given) ? given.map(String) : []
    if (error) {
      const { name, message, stack } = error
      const kind = this.#options.bounds.kinds.includes(error.kind) ? error.kind : 'script_error'
      this.#done = {
        error: this.#failure(kind, String(name), String(message), String(stack)),
        ...answer,
        changed,
        stdout,
      }
    } else this.#done = { value: JSON.parse(value) as unknown, ...answer, changed, stdout }
    return 0
  }
}
