// A chat with one session at a terminal: it sends input to the session, shows its work and asks its questions.
// Everything is in the log before it is shown, so nothing is lost however a chat ends.
import { randomUUID } from 'node:crypto'
import type { CommandEnd, RunningCommand } from '../../tools/index.ts'
import type { Input, Pending, Result, RunStream, Session, StreamEvent } from '../../index.ts'
import type { Card, Json } from '../../kernel/index.ts'
import { readRequestTokens } from '../../context/request-tokens.ts'
import {
  askApproval,
  decisionTarget,
  decideCovered,
  hasVoted,
  isForOthers,
  type ApprovalAnswer,
} from '../present/ask-approval.ts'
import { callSubject } from '../present/blocks.ts'
import { type BackgroundCommand, endLine, endTold, PERSON } from './background-commands.ts'
import { childLine, ChildWatcher } from './child-watcher.ts'
import type { ChatControl, ChatEnd, ChatOptions } from './chat-control.ts'
import { expandCalls, MODES, runSlashCommand, SERVER_MODE } from './slash-commands.ts'
import { ChatView } from './chat-view.ts'
import { draftOf } from './pick-commands.ts'
import { dollarsAgain, isRenewable, limitAtEnd, limitTexts, parseGoOn, watchForEvents } from './reached-limit.ts'
import { type ChatStatus, fitStatus, readBranch, statusParts } from './status-line.ts'
import { clipToWidth, fitLines, widthOf } from '../present/terminal-text.ts'
import { loadMarkdown } from '../present/markdown.ts'
import { modelText } from '../present/markdown-stream.ts'
import { type FormField, fieldLine, fieldsIn, whyFormRefused, readField } from '../../view/form-fields.ts'
import { oneLine, shownId, shownLine } from '../../view/clean.ts'
import { pendingHead, isBudget, requiredVotesText, votesText } from '../present/result-output.ts'
import { exitForError, EXIT, isDiskFull, STOPPED_BY_FULL_DISK } from '../exit.ts'
import type { Mode } from '../state/config.ts'
import { readSetup } from '../state/folder-setup.ts'
import { startSessionIn } from '../state/session-folders.ts'
import { readAllEvents, readEvents, waitsForPerson, readPending } from '../state/read-log.ts'
import { WAITS_MS } from '../present/outage.ts'
import { hiddenText, paintRows, previewCall } from '../present/call-preview.ts'
import { terretCommand } from '../present/print.ts'
import { watchPending, withdrawnText } from '../present/watch-pending.ts'

/** How often the log and the children are checked, because other processes may write too. */
const LOOK_MS = 500
/** The branch is read at every so many checks. */
const BRANCH_LOOKS = 4
/** How long a question waits before the terminal calls for the person. */
const RING_MS = 10_000

export class Chat implements ChatControl {
  readonly options: ChatOptions
  readonly view: ChatView
  session: Session | null
  requestedEnd: ChatEnd | null = null
  readonly #echoed = new Set<string>()
  #shown: ReadonlySet<string> = new Set()
  /** The number of the last event that this chat sent. */
  #sent = 0
  #works = false
  /** The text of each message that was sent to a run that worked, by its seq. */
  readonly #steered = new Map<number, string>()
  /** True while a run is followed, also between two parts of it when the person is asked. */
  #follows = false
  /** True while an input of the person is carried out. */
  #enters = false
  /** Calls that the person put off. They are asked again only on request. */
  readonly #later = new Set<string>()
  /** Ends the open question when another process decides its call. */
  #withdrawn: AbortSignal | null = null
  /** The last error of a check, so that it is not shown at every check. */
  #trouble = ''
  readonly children: ChildWatcher
  #looks = false
  /** True while it is checked whether there is news, which takes long while a server is away. */
  #peeks = false
  /** The command of the person that runs; null if none does. */
  #command: PersonCommandRun | null = null
  #stopping = false
  #left: boolean
  #closing: Promise<void> | null = null
  #warned = false
  #exit: number = EXIT.ok
  /** The mode for which the harness offers its tools. */
  readonly #offeredMode: Mode
  /** The last answer covers more than its call, so the other pending calls are checked again. */
  #wide = false
  /** As they were at the last look: they are shown in every drawing. */
  #branch: string | null
  #looked = 0
  /** The calls of the current questions. */
  #waiting: readonly Pending[] = []
  #spent = 0

  constructor(options: ChatOptions, session: Session | null) {
    this.options = options
    this.session = session
    this.#left = !options.terminal.open
    this.#offeredMode = options.setup.mode
    this.#branch = readBranch(options.setup.folder)
    this.view = new ChatView(options.terminal.out, options.calls, (id) => this.#echoed.has(id), options)
    this.children = new ChildWatcher(options.place.store)
    const { out } = options.terminal
    this.view.children = (mark) => [...this.children.lines(out.paint, out.columns, mark), ...this.#commandRows(mark)]
    this.view.isTakeable = (seq) => this.#takeable.at(-1) === seq
    this.view.status = () => statusParts(this.#status())
    if (!options.server) this.view.callKey = 'Ctrl-B background'
    options.background.onEnd = (command, end) => this.#commandEnded(command, end)
    out.rest(this.#restRow)
  }

  readonly #restRow = (): string => {
    const { paint, columns } = this.options.terminal.out
    return paint.dim(fitStatus(this.view.status(), columns))
  }

  #status(): ChatStatus {
    const { options, view, children } = this
    const { setup, models, typed } = options
    const { sessionUsd, treeUsd } = setup.settings.budget ?? {}
    const limits = [sessionUsd, treeUsd].filter((usd) => usd !== undefined)
    return {
      model: models[0] ?? '',
      mode: options.server ? 'server' : setup.mode,
      folder: setup.folder,
      home: setup.env['HOME'] ?? '',
      branch: this.#branch,
      context: view.context,
      spent: this.#spent,
      limitUsd: limits.length === 0 ? null : Math.min(...limits),
      children: children.working.length,
      background: options.background.all.length,
      queued: view.queued.size + typed.length,
    }
  }

  /** Runs until the user leaves. Open work and open questions of the session come first. */
  async talk(card: Card | null): Promise<ChatEnd> {
    const looking = setInterval(() => void this.#look(), LOOK_MS)
    try {
      return await this.#talk(card)
    } finally {
      clearInterval(looking)
      // The next session has agents of its own.
      this.options.terminal.out.show(null)
    }
  }

  async #talk(card: Card | null): Promise<ChatEnd> {
    if (card && !this.#left) {
      const tokens = await readRequestTokens(this.options.place.store, card.session, card.seq)
      if (tokens !== null) this.view.filled(tokens)
      if (card.status === 'requires_action' || card.due !== null || card.waits.length > 0) await this.goOn()
      else await this.look()
      const isAtLimit = card.outcome === 'limit' && card.status !== 'requires_action'
      if (isAtLimit) await this.#guarded(() => this.#goOnFromLimit())
    }
    while (!this.#left && this.requestedEnd === null) {
      const text = this.options.typed.shift() ?? (await this.options.terminal.read())
      if (text === null) break
      this.#enters = true
      await this.#guarded(() => this.#entered(text))
      this.#enters = false
      await this.#guarded(() => this.#offerMode())
      if (this.requestedEnd === null) await this.#look()
    }
    await this.#closing
    if (this.#exit === EXIT.ok && this.session && (await this.#waitsAtEnd(this.session.id))) this.#exit = EXIT.waits
    return this.requestedEnd ?? { type: 'left', exit: this.#exit }
  }

  async #look(): Promise<void> {
    const { session, view } = this
    if (this.#looks || this.#peeks || this.#left) return
    this.#looked += 1
    if (this.#looked % BRANCH_LOOKS === 0) this.#readBranch()
    if (!session) return
    this.#peeks = true
    try {
      const isAtRest = !this.#works && this.children.working.length === 0
      if (isAtRest && ((await this.options.place.store.card(session.id))?.seq ?? 0) <= view.seq) return
      await this.look()
      this.#trouble = ''
    } catch (error) {
      const { text } = exitForError(error)
      if (text !== this.#trouble) this.#showError(error)
      this.#trouble = text
    } finally {
      this.#peeks = false
    }
  }

  /** The person may have changed the branch in another terminal. */
  #readBranch(): void {
    const { setup, terminal } = this.options
    const branch = readBranch(setup.folder)
    if (branch === this.#branch) return
    this.#branch = branch
    terminal.out.rest(this.#restRow)
  }

  async look(): Promise<void> {
    const { session, options, view } = this
    const card = session && (await options.place.store.card(session.id))
    if (!session || !card || this.#looks) return
    this.#looks = true
    try {
      const { paint, columns } = options.terminal.out
      // If a parent call waits for the child, the line of that call shows the end, so only detached children get a
      // line.
      for (const child of await this.children.look(card))
        if (child.detached) options.terminal.out.say('call', childLine(child, paint, columns))
      this.#spent = this.children.all.reduce((sum, { card: { cost } }) => sum + cost, card.cost)
    } finally {
      this.#looks = false
    }
    if (this.#works || this.#left) return
    view.idle()
    if (this.#follows || this.#enters || card.seq <= view.seq) return
    // A child reported, or another process wrote: it decided a call, sent a message or continued the run.
    if (await this.#hasWork(card)) await this.#follow(() => this.#rest(session), true)
    else await this.#catchUp(session)
  }

  /** True if the session has work or questions. Calls that the person put off do not count. */
  async #hasWork({ session, status, due }: Card): Promise<boolean> {
    if (due !== null || status === 'running') return true
    if (status !== 'requires_action') return false
    const pending = await readPending(this.options.place.store, session)
    return !pending.every((each) => this.#later.has(pendingKey(each)))
  }

  /** Shows logged events that are not on the screen yet, while nothing works. */
  async #catchUp(session: Session): Promise<void> {
    const { view } = this
    const { seq: before } = view
    const source = { agent: '', run: null, parent: null }
    // Sound: for call events the view reads only the key, and takes the rest from the reply.
    for await (const event of readEvents(this.options.place.store, session.id, before))
      view.see({ ...event, session: session.id, sequence: 0, source } as unknown as StreamEvent)
    view.rest()
    const result = view.settled > before ? await session.result() : null
    if (result) view.ended(result)
  }

  /** Handles input outside of a prompt. A working session gets it in its next turn; otherwise it is queued. */
  aside(text: string): void {
    if (!this.#works) return void this.options.typed.push(text)
    if (text.trim() === '') return
    this.options.remember(text)
    if (text.startsWith('/')) {
      if (!this.options.terminal.echoes) this.view.echo(text)
      void this.#guarded(() => runSlashCommand(this, text, true))
    } else if (text.startsWith('!')) {
      if (!this.options.terminal.echoes) this.view.echo(text)
      void this.#guarded(() => this.#runCommand(text.slice(1).trim()))
    } else void this.#guarded(() => this.#steer(text))
  }

  /** Ctrl-C stops the run. A second Ctrl-C leaves the chat. */
  interrupt(): void {
    // Leaving takes too long, so exit at once.
    if (this.#left) process.exit(EXIT.interrupted)
    if (this.#command || (this.#works && !this.#stopping)) this.stop()
    else if (this.#works || this.#warned) this.leave()
    else {
      this.#warned = true
      this.view.note('Ctrl-C once more leaves, and so does Ctrl-D.')
    }
  }

  /** Stops the run, and never leaves. True if a run was there to be stopped. */
  stop(): boolean {
    const { session } = this
    if (this.#command) {
      this.#command.stop.abort()
      return true
    }
    if (!this.#works || !session) return false
    if (this.#stopping) return true
    this.#stopping = true
    this.view.stopping()
    void this.#guarded(() =>
      session.interrupt('stop', { by: this.options.by }).catch((error: unknown) => {
        if (!isDiskFull(error)) throw error
        this.view.note(STOPPED_BY_FULL_DISK)
        this.leave()
      }),
    )
    return true
  }

  /** The next mode that the folder allows. A run that works follows it from its next call on. */
  nextMode(): void {
    if (this.options.server) return this.view.note(SERVER_MODE)
    // The chat changes its mode already, and the next one follows from that.
    if (this.requestedEnd !== null) return
    void this.#guarded(async () => {
      const { setup, terminal } = this.options
      const wanted = NEXT_MODE[setup.mode]
      const { mode: allowed } = await readSetup(setup.home, setup.folder, { mode: wanted })
      const next = allowed === wanted ? wanted : wanted === 'auto' ? 'plan' : setup.mode
      if (next === setup.mode) return this.view.note(`  This folder allows only the mode ${setup.mode}.`)
      const isOffered = next !== 'plan' && this.#offeredMode !== 'plan'
      if (!this.#isBusy && !isOffered) return terminal.enter(`/mode ${next}`)
      setup.mode = next
      const isLater = this.#offeredMode === 'plan' ? ', once this has come to an end' : ''
      this.view.note(`  mode ${next}: ${MODES[next]}${isLater}`)
    })
  }

  /** Sends the command that was started last to the background. False: none runs here. */
  sendToBackground(): boolean {
    const sent = this.options.background.sendLast()
    if (!sent) return false
    this.view.note(`  in the background: ${oneLine(sent.running.command, 200)} · /background lists it`)
    return true
  }

  /** A run that works hears of the end at once, otherwise the next message tells it. */
  #commandEnded(command: BackgroundCommand, end: CommandEnd): void {
    if (this.#left) return
    const { terminal, told, by } = this.options
    const { paint, columns } = terminal.out
    const line = endLine(command, end, columns)
    terminal.out.say('call', end.exitCode === 0 ? paint.dim(line) : paint.red(line))
    const { session } = command.running
    if (session !== PERSON && session !== this.session?.id) return
    const text = endTold(command, end)
    if (!this.#works) return void told.push(text)
    // The line says it already.
    const id = randomUUID()
    this.#echoed.add(id)
    void this.#guarded(async () => void (await this.session?.send(text, { id, when: 'next', by })))
  }

  /** The last calls in full, on a screen of their own. */
  expand(): void {
    void this.#guarded(async () => {
      const rows = await expandCalls(this)
      if (rows.length === 0) this.view.note('There was no call in this session yet.')
      else this.options.terminal.page(rows)
    })
  }

  get #isBusy(): boolean {
    return this.#works || this.#follows || this.#enters
  }

  /** A harness fixes its tools when it is made, so a change from or to `plan` needs another one. */
  async #offerMode(): Promise<void> {
    const { mode } = this.options.setup
    if (this.requestedEnd !== null || this.#left || mode === this.#offeredMode) return
    if (mode !== 'plan' && this.#offeredMode !== 'plan') return
    if (this.session && (await this.#waits(this.session.id))) return
    this.requestedEnd = { type: 'again', mode }
  }

  /** Leaves the chat. A running session is released as it is. */
  leave(): void {
    if (this.#left) return
    this.#left = true
    this.#command?.stop.abort()
    if (this.#works) {
      this.#exit = EXIT.later
      this.#closing = this.options.sessions.close()
    }
    this.options.server?.hurry()
    this.options.terminal.close()
  }

  async #entered(text: string): Promise<void> {
    this.#warned = false
    if (text.trim() === '') return
    this.options.remember(text)
    // A message to a run of another process is queued, and shown once it is read.
    const isQueued = this.#follows && !/^[/!]/.test(text)
    if (!this.options.terminal.echoes && !isQueued) this.view.echo(text)
    if (text.startsWith('/')) return runSlashCommand(this, text, this.#works)
    if (text.startsWith('!')) return this.#runCommand(text.slice(1).trim())
    return this.say(text)
  }

  async say(text: string, entered = text): Promise<void> {
    // A child's report or another process has started a run since the prompt was shown.
    if (this.#follows) return this.#steer(text, entered)
    const id = randomUUID()
    this.#echoed.add(this.options.server?.eventIdOf(id) ?? id)
    const session = await this.ensureSession()
    const input = await this.#inputOf(text, entered)
    if (await this.#waits(session.id)) {
      await session.send(input, { id, by: this.options.by })
      return this.view.note('It waits for your word first, and hears this then: /approve, /reject or /pending.')
    }
    const { seq: written = 0 } = (await this.options.place.store.card(session.id)) ?? {}
    const { seq } = this.view
    // Events of other processes are shown before the answer.
    const after = seq > 0 && written > seq ? { after: seq } : {}
    await this.#follow(() => session.stream(input, { deltas: true, id, ...after }))
  }

  /** A server that is away does not keep the person here. */
  #waitsAtEnd(id: string): Promise<boolean> {
    const waits = this.#waits(id)
    return this.options.server ? waits.catch(() => false) : waits
  }

  /** True if the session, or a child that it waits for, waits for a person. */
  async #waits(id: string): Promise<boolean> {
    const { store } = this.options.place
    const card = await store.card(id)
    return card !== null && waitsForPerson(store, card)
  }

  async ensureSession(): Promise<Session> {
    const { place, sessions, server, agent } = this.options
    const of = agent === undefined ? {} : { agent }
    if (server) this.session ??= await sessions.open({ folder: place.folder, ...of })
    this.session ??= await startSessionIn(place, place.folder, (as) => sessions.open({ ...as, ...of }))
    return this.session
  }

  async #steer(text: string, entered = text): Promise<void> {
    const { seq = 0 } = (await this.session?.send(await this.#inputOf(text, entered), { when: 'next' })) ?? {}
    this.#sent = Math.max(this.#sent, seq)
    if (seq > 0) this.#steered.set(seq, text)
  }

  /** Messages of this chat that no request has included yet, the last at the end. */
  get #takeable(): readonly number[] {
    return [...this.#steered.keys()].filter((seq) => this.view.queued.has(seq))
  }

  get hasQueued(): boolean {
    return this.#takeable.length > 0
  }

  /** Takes the last queued message back. The log says whether a request came first; then it stays sent. */
  async unqueue(): Promise<string | null> {
    const { session, view, options } = this
    const message = this.#takeable.at(-1)
    if (!session || message === undefined) return null
    const text = this.#steered.get(message) ?? ''
    let isSent = false
    await this.#guarded(async () => {
      isSent = true
      const { seq } = await session.send([{ type: 'withdraw', message }], { by: options.by })
      for await (const event of readEvents(options.place.store, session.id, message)) {
        if (event.seq >= seq) break
        if (event.type === 'run.settled' || (event.type === 'model.started' && event.shows.includes(message)))
          return view.note('It was sent already, and cannot be taken back.')
      }
      isSent = false
    })
    if (isSent) return null
    this.#steered.delete(message)
    view.queued.delete(message)
    return draftOf(text)
  }

  /** The message with the files that it names and with what the person's commands printed. */
  async #inputOf(text: string, entered: string): Promise<Input> {
    const { setup, told } = this.options
    if (!text.includes('@') && told.length === 0) return text
    const { attachFiles } = await import('./person-calls.ts')
    const { input, lines } = await attachFiles(setup, text, { before: told.splice(0), entered })
    for (const line of lines) this.view.note(`  ${line}`)
    return input
  }

  /** What the person's command printed last, and how to stop it. */
  #commandRows(mark: string): readonly string[] {
    if (!this.#command) return []
    const { paint, columns } = this.options.terminal.out
    const { shown, last } = this.#command
    const rows = last.map((line) => clipToWidth(`    ${oneLine(line, 2_000)}`, columns))
    return [...rows, `${mark} ${clipToWidth(shown, columns - 16)} · Esc stops`].map((row) => paint.dim(row))
  }

  /** Runs a command of the person. A run that works hears what it printed at once, otherwise the next message tells it. */
  async #runCommand(command: string): Promise<void> {
    const { options, view } = this
    const { out } = options.terminal
    if (options.server) return view.note(SERVER_COMMAND)
    if (command === '') return view.note('Write a command after the "!", such as: !git status')
    if (this.#command) return view.note('A command of yours runs already. Esc stops it.')
    const stop = new AbortController()
    const last: string[] = []
    this.#command = { shown: `! ${oneLine(command, 400)}`, last, stop }
    const onText = (text: string): void => {
      last.push(...text.trimEnd().split('\n').slice(-LAST_ROWS))
      last.splice(0, last.length - LAST_ROWS)
    }
    if (!this.#works) view.idle()
    try {
      const { runCommand } = await import('./person-calls.ts')
      const onRunning = (running: RunningCommand): void => options.background.watch(running)
      const ran = await runCommand(options.setup, command, { signal: stop.signal, onText, onRunning })
      if (typeof ran === 'string') return view.note(oneLine(ran, 600))
      const rows = ran.rows.slice(-COMMAND_ROWS_MAX).map((row) => clipToWidth(`  ${shownLine(row)}`, out.columns))
      const more = ran.rows.length - rows.length
      const head = more > 0 ? [out.paint.dim(`  … ${more} lines before these`)] : []
      const outcome = `  ${ran.good ? '✓' : '✗'} ${ran.outcome}`
      const end = ran.good ? out.paint.dim(outcome) : out.paint.red(outcome)
      out.say('call', [...head, ...rows, end].join('\n'))
      if (this.#works) await this.session?.send(ran.told, { when: 'next', by: options.by })
      else options.told.push(ran.told)
    } finally {
      this.#command = null
      if (!this.#works) view.idle()
    }
  }

  async goOn(): Promise<void> {
    const { session } = this
    if (session) await this.#guarded(() => this.#follow(() => this.#rest(session)))
  }

  async goOnIfIdle(): Promise<void> {
    if (!this.#works) await this.goOn()
  }

  #rest(session: Session): RunStream {
    return session.stream(undefined, { after: this.view.seq, deltas: true })
  }

  /** `isUnasked`: the person did not start this, so calls that were put off are not asked again. */
  async #follow(begin: () => RunStream, isUnasked = false): Promise<void> {
    this.#follows = true
    try {
      await this.#followed(begin, isUnasked)
    } finally {
      this.#follows = false
    }
    if (!this.#left) await this.look()
  }

  async #followed(begin: () => RunStream, isUnasked: boolean): Promise<void> {
    const { session, view } = this
    for (let stream = begin(); ; ) {
      const before = view.seq
      const result = await this.#watch(stream)
      if (this.#left || !session) return
      if (result.status === 'requires_action' && result.stopReason !== 'paused') {
        if (isUnasked && result.pending.every((each) => this.#later.has(pendingKey(each)))) return
        if (!(await this.#decided(session, result))) return
      } else if (result.status === 'sleeping' && result.reason !== undefined) {
        // The provider asked for a longer wait, so the chat waits here.
        stream = session.stream(undefined, { after: view.seq, deltas: true, patienceMs: WAITS_MS })
        continue
      } else {
        view.ended(result)
        if (result.status === 'limit' && (await this.#asksToGoOn(session))) {
          stream = this.#rest(session)
          continue
        }
        const more = view.queued.size > 0 || this.#sent > view.seq
        if (!more || result.status === 'sleeping' || view.seq === before) return
      }
      stream = this.#rest(session)
    }
  }

  /** A chat that was left at the question asks it again. */
  async #goOnFromLimit(): Promise<void> {
    const { session } = this
    if (!session || this.#left || this.view.settled > 0) return
    if (await this.#asksToGoOn(session)) await this.#follow(() => this.#rest(session))
  }

  /** At a limit the person says whether it goes on. True if they allowed more, or if another process went on. */
  async #asksToGoOn(session: Session): Promise<boolean> {
    const { store } = this.options.place
    const reached = limitAtEnd(await readAllEvents(store, session.id))
    if (reached?.limit === 'usd') {
      const budget = (await readPending(store, session.id)).find(isBudget)
      return budget !== undefined && this.ask(budget)
    }
    const texts = reached && isRenewable(reached.limit) ? limitTexts(reached.limit, reached.limits) : null
    if (texts === null) return false
    const others = watchForEvents(store, session.id, this.view.seq)
    const ringing = this.#ringLater()
    const question = `${texts.used}. Go on for another ${texts.more}? y · n ›`
    const said = await this.options.terminal.read(question, others.signal)
    others.stop()
    clearTimeout(ringing)
    if (others.signal.aborted) return true
    const reply = parseGoOn(said)
    if (reply.type === 'message') this.options.typed.unshift(reply.text)
    if (reply.type === 'no' && !this.#left) this.view.note('It stays here. Say "go on" for another run.')
    if (reply.type !== 'yes') return false
    const id = randomUUID()
    this.#echoed.add(this.options.server?.eventIdOf(id) ?? id)
    await session.send(`Go on, for another ${texts.more}.`, { id, by: this.options.by })
    return true
  }

  async #watch(stream: RunStream): Promise<Result> {
    const { view } = this
    await loadMarkdown()
    this.#works = true
    view.begin()
    try {
      for await (const event of stream) view.see(event)
      return await stream.result
    } finally {
      this.#works = false
      this.#stopping = false
      if (!this.#left) view.rest()
    }
  }

  /** False if the session has to wait. */
  async #decided(session: Session, result: Result): Promise<boolean> {
    const { setup, kept } = this.options
    if (await decideCovered({ session, setup, kept }, result)) return true
    this.#waiting = result.pending.filter((each) => each.needs === 'approval' && !isBudget(each))
    if (this.#waiting.length > 1) await this.#listWaiting()
    for (const pending of result.pending) {
      const done = !isForOthers(pending, this.options.by) && (await this.ask(pending))
      if (this.#left) return false
      if (!done) {
        for (const each of result.pending) this.#later.add(pendingKey(each))
        const others = isForOthers(pending, this.options.by) ? ` for others: ${requiredVotesText(pending)}` : ''
        this.view.note(`It waits${others}. /pending shows it again, /approve and /reject decide it.`)
        return false
      }
      if (this.#wide || this.#withdrawn?.aborted) return true
    }
    return true
  }

  /** All calls that wait, in a line each, so that the person sees what the first answer is about. */
  async #listWaiting(): Promise<void> {
    const { terminal, setup } = this.options
    const { paint, columns } = terminal.out
    const lines = this.#waiting.map(async (pending, at) => {
      const { sum } = await previewCall(setup.folder, pending, { columns, rows: 1 })
      return `  ${at + 1} ${[callSubject(pending), sum].filter((text) => text !== '').join(' · ')}`
    })
    const rows = (await Promise.all(lines)).map((line) => clipToWidth(line, columns))
    terminal.out.say('ask', [paint.bold(`${rows.length} calls wait for you:`), ...rows].join('\n'))
  }

  async ask(pending: Pending): Promise<boolean> {
    const { store } = this.options.place
    const watch = watchPending(store, pending)
    const ringing = this.#ringLater()
    this.#withdrawn = watch.signal
    try {
      const isDecided = await this.#askOpen(pending)
      if (!watch.signal.aborted) return isDecided
      this.view.note(await withdrawnText(store, pending))
      this.view.decided(pending.callId)
      return true
    } catch (error) {
      // The call was decided elsewhere or has expired: go on without this decision.
      if (!(error instanceof Error) || error.name !== 'Fault') throw error
      this.view.note(oneLine(error.message, 400))
      return true
    } finally {
      watch.stop()
      clearTimeout(ringing)
    }
  }

  /** A question that is not answered soon is likely not seen. */
  #ringLater(): NodeJS.Timeout | undefined {
    const { setup, terminal } = this.options
    return setup.settings.bell === false ? undefined : setTimeout(() => terminal.ring(), RING_MS)
  }

  async #askOpen(pending: Pending): Promise<boolean> {
    if (isBudget(pending)) return this.#allowMoney(pending)
    return pending.needs === 'answer' ? this.#answer(pending) : this.#approve(pending)
  }

  /** Reads one line as the answer to the current question. */
  #read(question: string): Promise<string | null> {
    return this.options.terminal.read(question, this.#withdrawn ?? undefined)
  }

  async #allowMoney(pending: Pending): Promise<boolean> {
    this.view.note(pendingHead(pending))
    const again = dollarsAgain(pending.args)
    const question =
      again === null ? 'How many dollars more? (empty: later) ›' : `Go on for another $${again}? y · n · or an amount ›`
    for (;;) {
      const said = (await this.#read(question))?.trim() ?? ''
      if (/^(n|no|)$/i.test(said)) return false
      const usd = again !== null && /^(y|yes)$/i.test(said) ? again : Number(said.replace(/^\$/, ''))
      if (!(usd > 0)) {
        this.view.note(`Say ${again === null ? '' : 'y, n, or '}an amount in dollars, such as 0.50.`)
        continue
      }
      const { callId, sessionId } = pending
      await this.session?.decide({ callId, sessionId, allow: true, usd, by: this.options.by })
      return true
    }
  }

  async #answer({ callId, sessionId, args }: Pending): Promise<boolean> {
    const { terminal, by } = this.options
    const { question, choices } = (args ?? {}) as { readonly question?: unknown; readonly choices?: unknown }
    const offered = Array.isArray(choices) ? choices.map(String) : []
    const asked = typeof question === 'string' ? question : JSON.stringify(args)
    const { columns } = terminal.out
    const choice = (text: string, at: number): string => fitLines(`  ${at + 1} ${oneLine(text)}`, columns)
    terminal.out.say('question', [modelText(asked, terminal.out.style), ...offered.map(choice)].join('\n'))
    const fields = fieldsIn(args)
    const filled = fields.length === 0 ? null : await this.#fill(fields)
    if (fields.length > 0 && filled === null) return false
    if (filled !== null) {
      await this.session?.answer({ callId, content: filled, by, sessionId })
      return true
    }
    const hint = offered.length > 0 ? 'Your answer, or a number (empty: later) ›' : 'Your answer (empty: later) ›'
    const said = (await this.#read(hint))?.trim() ?? ''
    if (said === '') return false
    const content = offered[Number(said) - 1] ?? said
    if (!terminal.echoes) this.view.echo(content)
    await this.session?.answer({ callId, content, by, sessionId })
    return true
  }

  /** Asks for each field until the value is valid. Null: later. */
  async #fill(fields: readonly FormField[]): Promise<string | null> {
    const values: Record<string, Json> = {}
    for (const field of fields) {
      for (;;) {
        const typed = await this.#read(`${oneLine(fieldLine(field), 400)} ›`)
        if (typed === null) return null
        const value = readField(field, typed)
        const trouble = whyFormRefused([field], JSON.stringify(value === undefined ? {} : { [field.name]: value }))
        if (trouble === null && value !== undefined) values[field.name] = value
        if (trouble === null) break
        if (typed.trim() === '') return null
        this.view.note(trouble)
      }
    }
    return JSON.stringify(values)
  }

  async #approve(pending: Pending): Promise<boolean> {
    const { terminal, setup, by, kept } = this.options
    const asker = {
      read: (question: string) => this.#read(question),
      note: (text: string) => terminal.out.say('ask', terminal.out.paint.dim(fitLines(text, terminal.out.columns))),
      show: (each: Pending, whole: boolean) => this.showPending(each, whole),
      showAll: this.#others(pending) ? () => this.#showAll() : null,
      edit: async (text: string) => {
        const edited = await terminal.edit(text, 'arguments.json')
        if (edited.type === 'edited') return edited.text
        this.view.note(edited.why)
        terminal.out.say('ask', terminal.out.paint.dim(fitLines(oneLine(text, 4_000), terminal.out.columns)))
        return this.#read('The arguments as JSON, on one line (empty: as they are) ›')
      },
      reason: async () => (await this.#read('Why not? It is told (empty: no reason) ›'))?.trim() ?? '',
    }
    // A server keeps no rules of a client, so nothing wider than this call is offered.
    const asked = this.options.server ? { ...pending, each: true as const } : pending
    const said = await askApproval(asker, { setup, by, kept, session: this.session?.id ?? '' }, asked)
    if (said === null) return false
    this.#wide = said.scope === 'run'
    await this.#record(pending, said)
    return true
  }

  /** True if other calls wait, too. */
  #others(pending: Pending): boolean {
    return this.#waiting.some((each) => pendingKey(each) !== pendingKey(pending))
  }

  async #showAll(): Promise<void> {
    for (const each of this.#waiting) await this.showPending(each, true)
  }

  async showPending(pending: Pending, whole = false): Promise<boolean> {
    const { terminal, setup } = this.options
    const { paint, columns, rows } = terminal.out
    const room = { columns, rows: whole ? Number.POSITIVE_INFINITY : Math.max(8, rows - 10) }
    const action = await previewCall(setup.folder, pending, room)
    const before = pending.denied ? ['refused before in this run'] : []
    const about = [action.sum, ...before].filter((text) => text !== '').map((text) => ` · ${text}`)
    const end = `${about.join('')} (call ${shownId(pending.callId)})`
    // All of it stands below.
    const subject = clipToWidth(callSubject(pending), Math.max(SUBJECT_COLUMNS_MIN, columns - 2 - widthOf(end)))
    const wants = paint.bold(fitLines(`? ${subject}${end}`, columns))
    const hidden = hiddenText(action, 'd shows all of it.')
    this.#shown = new Set([...this.#shown, pendingKey(pending)])
    const call = this.view.calls.at(pending.sessionId, pending.callId)
    if (call) call.isShown = true
    const last = hidden === null ? [] : [paint.yellow(fitLines(hidden, columns))]
    terminal.out.say('question', [wants, ...paintRows(action.rows, paint), ...last].join('\n'))
    return hidden !== null
  }

  noteShown(): (pending: Pending) => boolean {
    const shown = this.#shown
    return (pending) => shown.has(pendingKey(pending))
  }

  decide(pending: Pending, allow: boolean, why = ''): Promise<void> {
    return this.#record(pending, { allow, ...(why === '' ? {} : { why }) })
  }

  async #record(pending: Pending, said: ApprovalAnswer): Promise<void> {
    const { by, terminal } = this.options
    if (hasVoted(pending.votes ?? [], by)) return this.view.note(`You approved it already: ${votesText(pending)}.`)
    await this.session?.decide({ ...decisionTarget(pending), by, ...said })
    this.view.decided(pending.callId)
    const { green, red } = terminal.out.paint
    const why = said.why === undefined ? '' : `: ${oneLine(said.why)}`
    terminal.out.say(
      'ask',
      said.allow
        ? green(said.args === undefined ? '  allowed' : '  allowed with your arguments')
        : red(fitLines(`  refused${why}`, terminal.out.columns)),
    )
  }

  /** Shows an error in one line, and the chat goes on. */
  async #guarded(act: () => Promise<unknown>): Promise<void> {
    try {
      await act()
    } catch (error) {
      this.#showError(error)
    }
  }

  #showError(error: unknown): void {
    if (this.#left) return
    const { out } = this.options.terminal
    out.say('note', out.paint.red(fitLines(`! ${oneLine(exitForError(error).text, 600)}`, out.columns)))
  }

  get wayBack(): string | null {
    return this.session && `Go on with: ${terretCommand`interactive ${this.session.id}`}`
  }
}

type PersonCommandRun = {
  readonly shown: string
  readonly last: readonly string[]
  readonly stop: AbortController
}

const SERVER_COMMAND =
  'A command after "!" would run on this machine, and this session is on a server: ask the agent to run it, or run it in a terminal there.'
/** The least room for the subject of a question in its first row. */
const SUBJECT_COLUMNS_MIN = 20
/** How many rows of a command that runs are shown. */
const LAST_ROWS = 5
/** How many rows of the output of a person's command are shown. The model is told more. */
const COMMAND_ROWS_MAX = 40

/** The order in which Shift-Tab goes through the modes. */
const NEXT_MODE = { ask: 'auto', auto: 'plan', plan: 'ask' } as const

function pendingKey({ sessionId, callId, digest = '' }: Pending): string {
  return `${sessionId} ${callId} ${digest}`
}
