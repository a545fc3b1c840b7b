// The commands, their arguments and flags, as data. Help, parsing, suggestions and completion read this table.

export type Flag = {
  readonly type: 'string' | 'boolean'
  readonly short?: string
  /** The name of its value, for help. */
  readonly takes?: string
  readonly says: string
  readonly multiple?: true
}

export type CommandEntry = {
  /** The words that the command takes, as its usage shows them. */
  readonly words: string
  /** The fewest and the most words. */
  readonly least: number
  readonly most: number
  readonly says: string
  readonly flags: Readonly<Record<string, Flag>>
}

const flag = (says: string, short?: string): Flag => ({ type: 'boolean', says, ...(short ? { short } : {}) })
const value = (takes: string, says: string, short?: string): Flag => {
  return { type: 'string', takes, says, ...(short ? { short } : {}) }
}

const json = flag('print JSON: one object, or one a line')
const help = flag('show this help', 'h')
const data = value('DIR', 'keep sessions in this folder, instead of TERRET_HOME or your data folder')
const common = { json, data, help }

/** Flags of commands that drive a session. */
const driving = {
  model: value('NAME', 'provider:model; may be given several times: the next one is asked when one fails'),
  mode: value('MODE', 'plan: only look; ask: ask before changes (default); auto: as each tool itself asks'),
  'on-ask': value('WHAT', 'park: wait for a person (default); deny: a question counts as a no'),
  environment: value('NAME', 'the name that rules of the policy call this place by'),
  patience: value('TIME', 'how long to wait for a provider that is away, such as 90s, 5m or 1h (default 15m)'),
  quiet: flag('no progress', 'q'),
  verbose: flag('show each request as it is sent, without secrets'),
}
const outputFormat = {
  'output-format': value('FORMAT', 'text (default), json: one object, or stream-json: each event as a line of JSON'),
}
const drivingFlags = { ...driving, model: { ...driving.model, multiple: true } } satisfies Record<string, Flag>
const decisionFlags = {
  by: value('WHO', 'who decides (default: your user name)'),
  why: value('TEXT', 'the reason, kept in the log and told to the model'),
  resume: flag('go on with the session at once'),
  yes: flag('do not ask back at a terminal', 'y'),
  whole: flag('show long arguments in full'),
}

const entry = (words: string, [least, most]: readonly [number, number], says: string, flags = {}): CommandEntry => {
  return { words, least, most, says, flags: { ...flags, ...common } }
}

/** For commands that use a protocol on standard output, where nothing else may be printed. */
const protocolEntry = (...[words, counts, says, flags]: Parameters<typeof entry>): CommandEntry => {
  const { json: _none, ...others } = entry(words, counts, says, flags).flags
  return { ...entry(words, counts, says), flags: others }
}
const servingFlags = {
  model: drivingFlags.model,
  mode: driving.mode,
  'on-ask': driving['on-ask'],
  environment: driving.environment,
  patience: driving.patience,
}

const MANY = 1_000

/** Flags of `mcp serve` alone. */
const serveFlags = Object.fromEntries(
  Object.entries({
    ...servingFlags,
    agent: value('ID', 'as this agent of `terret agents`'),
    role: value('ROLE', 'what its client may do: viewer, operator (default), approver or admin'),
  }).map(([name, each]) => [name, { ...each, says: `serve: ${each.says}` }]),
)
export const SERVE_FLAGS: readonly string[] = Object.keys(serveFlags)

export const TABLE: Readonly<Record<string, CommandEntry>> = {
  init: entry('', [0, 0], 'choose a model and write a user configuration; at a terminal it asks', {
    model: value('NAME', 'the model to write down'),
    window: value('TOKENS', 'how many tokens that model takes, where no table and no host says it'),
  }),
  create: entry('NAME', [1, 1], 'a new folder with a program to begin with, and its tests', {
    template: value('NAME', 'agent (default), next, hono, worker or coding', 't'),
    install: flag('run npm install in it; nothing is installed otherwise'),
  }),
  run: entry('TASK…', [0, MANY], 'work on a task in this folder', {
    ...drivingFlags,
    ...outputFormat,
    agent: value('ID', 'as this agent of `terret agents`'),
    trust: flag('trust this folder from now on: read its .terret, AGENTS.md and .env'),
    continue: flag('go on with the last session of this folder, or with --session', 'c'),
    session: value('ID', 'with --continue: which session'),
    outcome: value('FILE', 'work in rounds until a grader finds everything in this rubric met'),
    rounds: value('N', 'with --outcome: at most so many rounds (default 3)'),
    usd: value('USD', 'with --outcome: for all rounds and graders'),
  }),
  start: entry('TOPIC…', [1, MANY], 'make a report on a topic from a folder of documents', {
    ...drivingFlags,
    documents: value('DIR', 'the folder with the documents: .txt and .md files', 'd'),
    'source-file': value('FILE', 'a JSON list of sources instead: [{"name": "…", "text": "…"}]'),
    out: value('FILE', 'where the report goes (default: reports/ and the topic)', 'o'),
  }),
  interactive: entry('[ID] ["TEXT"]', [0, 2], 'chat with an agent in this folder, at a terminal', {
    model: drivingFlags.model,
    mode: driving.mode,
    'on-ask': driving['on-ask'],
    environment: driving.environment,
    patience: driving.patience,
    verbose: driving.verbose,
    agent: value('ID', 'as this agent of `terret agents`'),
    trust: flag('trust this folder from now on: read its .terret, AGENTS.md and .env'),
    continue: flag('go on with the last session of this folder', 'c'),
  }),
  list: entry('', [0, 0], 'sessions of this folder, newest first', {
    all: flag('of all folders', 'a'),
    limit: value('N', 'at most so many (default 20)', 'n'),
    status: value('STATUS', 'only idle, running, rescheduling, requires_action or terminated'),
    search: value('TEXT', 'only those with these words in their title, agent, id or labels', 's'),
  }),
  inspect: entry('ID', [1, 1], 'what a session is, did and waits for', {
    whole: decisionFlags.whole,
    context: flag('what its next request holds, by source and tokens'),
    tree: flag('the session and all its children: state, agent, cost, time, and what each waits for'),
  }),
  pending: entry('[ID]', [0, 1], 'what waits for a person, with the exact action', {
    all: flag('in all folders', 'a'),
    whole: decisionFlags.whole,
  }),
  approve: entry('[ID] [CALL]', [0, 2], 'allow a pending call, exactly as shown; without ID the only one here', {
    ...decisionFlags,
    ...drivingFlags,
    role: value('ROLE', 'in which role, where a rule wants one'),
    args: value('JSON', 'run it with these arguments in place of those shown'),
    always: flag('keep a rule that allows exactly this call in this folder from now on'),
    usd: value('DOLLARS', 'for CALL "budget": how much more the session may spend'),
  }),
  reject: entry('[ID] [CALL]', [0, 2], 'refuse a pending call; without ID the only one here', {
    ...decisionFlags,
    ...drivingFlags,
    role: value('ROLE', 'in which role'),
  }),
  answer: entry('ID [CALL] TEXT', [2, 3], 'answer a question of a session', {
    by: decisionFlags.by,
    resume: decisionFlags.resume,
    ...drivingFlags,
  }),
  resume: entry('ID [MESSAGE…]', [1, MANY], 'go on with a session, wherever it stopped', {
    ...drivingFlags,
    ...outputFormat,
    hold: {
      ...value('TOOL=TIME', 'wait so long, such as 300ms, between a call of this tool (* for all) and its result'),
      multiple: true,
    },
  }),
  tail: entry('ID', [1, 1], 'follow the events of a session', {
    settled: flag('end when nothing is left to do'),
    tree: flag('also all its children, those that are started later too'),
    lines: value('N', 'begin with the last N events (default 10)', 'n'),
  }),
  history: entry('ID', [1, 1], 'the events of a session', {
    event: value('TYPE', 'only events of this type'),
    tail: value('N', 'only the last N'),
  }),
  wake: entry('ID', [1, 1], 'look at a session once, and do what is due; or at a time, by a worker', {
    ...drivingFlags,
    in: value('TIME', 'schedule: in how long, such as 90s, 30m, 2h or 3d'),
    at: value('TIME', 'schedule: when, such as 2027-01-31T09:00 (here) or 2027-01-31T09:00Z'),
    reason: value('TEXT', 'schedule: what the model reads then'),
    key: value('KEY', 'schedule: while a wake with this key waits, it stands (default: a new one)'),
    cancel: value('KEY', 'drop the wake that waits under this key'),
    by: value('WHO', 'who schedules or cancels, in the log (default: your user name)'),
  }),
  serve: entry('', [0, 0], 'serve the sessions over HTTP, and do whatever becomes due, until stopped', {
    ...drivingFlags,
    port: value('PORT', 'which port (default 4747; 0: any that is free)', 'p'),
    host: value('ADDRESS', 'listen here instead of 127.0.0.1; others can then reach it, and need --name'),
    name: { ...value('HOST', 'a name it is reached by, such as box.lan'), multiple: true },
    by: value('WHO', 'who you are in the log (default: your user name)'),
    width: value('N', 'drive so many sessions at once (default 16)'),
    'no-drive': flag('drive nothing: only show, record and decide; `terret worker` drives'),
    open: flag('open the inspector in your browser'),
  }),
  triggers: entry(
    'list|retry|drop [ID]',
    [1, 2],
    'events from outside that came to no end: list them, run one again, or drop it',
    {
      limit: value('N', 'list: at most so many (default 50)', 'n'),
      by: decisionFlags.by,
    },
  ),
  token: entry('make|list|drop [NAME]', [1, 2], 'who may ask the server: make a token, list them, or drop one', {
    role: value('ROLE', 'make: viewer (default), operator, approver or admin'),
    roles: value('NAMES', 'make: the roles that approvals ask for, such as lead,finance'),
    reach: value('WHAT', 'make: own: only sessions that it opens; all (default)'),
    expires: value('TIME', 'make: how long it is good, such as 12h or 30d (default: until it is dropped)'),
    inherit: flag('make: it gets the sessions of a dropped token of the same name'),
    by: value('WHO', 'who you are in the log (default: your user name)'),
  }),
  worker: entry('', [0, 0], 'do whatever becomes due, until stopped', {
    ...drivingFlags,
    idle: flag('end when nothing is due any more'),
    agents: value('NAMES', 'only sessions of these agents, such as default,researcher'),
    metrics: value('PORT', 'numbers for Prometheus on this port of this machine, or on ADDRESS:PORT'),
  }),
  interrupt: entry('ID', [1, 1], 'stop what a session does', {
    pause: flag('only pause it; `resume` goes on'),
    by: value('WHO', 'who does it (default: your user name)'),
  }),
  undo: entry('ID', [1, 1], 'take back the file changes of its last run', {
    run: value('SEQ', 'of the run that began with this event'),
  }),
  compact: entry('ID', [1, 1], 'summarise all but the last messages of a session', {
    focus: value('TEXT', 'what the summary is to say most about'),
    model: drivingFlags.model,
    verbose: driving.verbose,
  }),
  pin: entry(
    'ID [TEXT]',
    [1, 2],
    'what every later request of a session holds word for word; with TEXT, pin that too',
    {
      message: value('SEQ', 'pin the message with this number, as `terret history` shows it'),
      remove: value('SEQ', 'let the pin with this number go, as the list shows it'),
    },
  ),
  rename: entry('ID TITLE…', [2, MANY], 'give a session another title in lists; it goes on as it is', {
    by: value('WHO', 'who gives the title, in the log (default: your user name)'),
  }),
  fork: entry('ID', [1, 1], 'a new session that goes on from an event of another', {
    at: value('SEQ', 'the event (default: the last)'),
  }),
  'what-if': entry('ID', [1, 1], 'live a session again from one of its events on, with something changed', {
    at: value('SEQ', 'the last event that stays as it was'),
    model: {
      ...driving.model,
      multiple: true,
      says: 'ask this model, for every agent (default: the recording answers)',
    },
    instructions: value('TEXT', 'these in place of those of the agent; @FILE reads them'),
    message: value('TEXT', 'said in place of what people said after that event'),
    tool: {
      ...value('NAME=HOW', 'recorded (default), live, or recorded-or-live; may be given several times'),
      multiple: true,
    },
    effects: flag('tools that change something may be live too'),
    strict: flag('end at the first answer that the recording does not have'),
    all: flag('go on to the end of the log, not only of the run'),
    usd: value('AMOUNT', 'what it may cost, in dollars'),
    case: value('ID', 'print it as a case for an evaluation too'),
    out: value('PATH', 'write what happened as a file', 'o'),
    mode: driving.mode,
  }),
  replay: entry('ID', [1, 1], 'fold and decide its log again, and say where today differs'),
  export: entry('ID', [1, 1], 'a session as a file', {
    format: value('FORMAT', 'jsonl (default), md, json (can be imported), html, or folder'),
    html: flag('as --format html: one page for a browser, with the log inside'),
    out: value('PATH', 'where to; without it, to standard output', 'o'),
  }),
  import: entry('FILE', [1, 1], 'a session from an exported json file, or from a transcript of another program', {
    id: value('ID', 'under another id'),
    format: value('FORMAT', 'of a transcript: claude-code, codex, openai or anthropic'),
  }),
  memory: entry('[ID]', [0, 1], 'what a session is doing, as files; and what the agent of this folder learned', {
    query: value('TEXT', 'learnings about this, nearest first'),
    top: value('N', 'with --query: at most so many (default 5)', 'n'),
    learnings: flag('all learnings of this folder'),
    episodes: flag('what was asked here in earlier runs, and how each ended'),
    promote: value('LEARNING', 'keep one in MEMORY.md, which every run in this folder is told'),
    forget: value('LEARNING', 'take one out, for good'),
    'forget-episode': value('EPISODE', 'the same for an episode'),
    share: value('LEARNING', 'show one to the sessions of all owners'),
    'forget-owner': value('WHO', 'take out, for good, all that the sessions of this owner taught'),
    owner: value('WHO', 'of the sessions of this owner (default: of those without one)'),
    rebuild: value('ID', 'write the files of this session again, from its log'),
  }),
  delete: entry('ID', [1, 1], 'take a session out for good, with all that is kept of it', {
    yes: flag('do not ask; needed where nobody can be asked', 'y'),
    by: value('WHO', 'who does it (default: your user name)'),
  }),
  prune: entry('--older DAYS', [0, 0], 'take out old sessions of this folder that have nothing left to do', {
    older: value('DAYS', 'those with no event for so many days'),
    status: value('STATUS', 'only idle or terminated'),
    all: flag('of all folders', 'a'),
    'dry-run': flag('only show them'),
    yes: flag('do not ask; needed where nobody can be asked', 'y'),
    by: value('WHO', 'who does it (default: your user name)'),
  }),
  policy: entry('[test TOOL JSON | forget N]', [0, 3], 'the policy here; what it says of a call; forget a kept rule', {
    mode: driving.mode,
    'on-ask': driving['on-ask'],
    environment: driving.environment,
  }),
  tools: entry('[NAME]', [0, 1], 'the tools a model is offered here, with effect and approval; of one, its schema', {
    mode: driving.mode,
    mcp: flag('with those of the MCP servers, which are connected to (the default)'),
    'no-mcp': flag('without those of the MCP servers'),
  }),
  agents: entry('[show ID]', [0, 2], 'the agents that can be used here; of one, its whole definition and prompt'),
  blueprint: entry(
    'ID|AGENT',
    [1, 1],
    'the whole setup of an agent here, or what the last run of a session was given',
    {
      format: value('FORMAT', 'md (default), json or mermaid'),
      model: drivingFlags.model,
    },
  ),
  board: entry('[ID]', [0, 1], 'the board and the goal of a session, or of the latest'),
  tasks: entry('[ID]', [0, 1], 'what was started here; or what a session started, and the calls it waits for', {
    limit: value('N', 'at most so many (default 20)', 'n'),
    all: flag('of all folders', 'a'),
  }),
  letters: entry(
    '[list | retry KEY | drop KEY]',
    [0, 2],
    'runs that a consumer could not be told of; try again or drop',
    {
      by: decisionFlags.by,
      consumer: value('NAME', 'of this consumer, where several have the letter'),
    },
  ),
  handoffs: entry('ID', [1, 1], 'who gave what to whom among its agents: tasks, reports, questions, answers, messages'),
  workflow: entry(
    '[list | show NAME | run NAME [INPUT…] | runs]',
    [0, MANY],
    'list, draw and run workflows, also those in files',
    {
      format: value('FORMAT', 'show: mermaid (default) or json'),
      ...drivingFlags,
    },
  ),
  script: entry('list | show NAME | run NAME', [1, 2], 'saved programs whose calls are calls of a session', {
    ...drivingFlags,
  }),
  cron: entry(
    'add NAME LINE | list | run NAME | on NAME | off NAME | remove NAME',
    [1, 3],
    'sessions that begin at the times of a cron line, such as "0 3 * * *"',
    {
      prompt: value('TEXT', 'add: what the agent is told each time', 'p'),
      agent: value('ID', 'add: which agent of `terret agents` (default: that of the folder)'),
      zone: value('ZONE', 'add: the time zone, such as Europe/Oslo (default: that of this machine)'),
      missed: value('RULE', 'add: times without a worker: skip, once (default) or all'),
      overlap: value('RULE', 'add: while a run works: skip (default), queue or replace'),
      requests: value('N', 'add: at most so many model requests in each run'),
      all: flag('list: of all folders', 'a'),
      model: drivingFlags.model,
      quiet: driving.quiet,
    },
  ),
  eval: entry(
    'run FILE | add FILE ID | compare BEFORE AFTER',
    [2, 3],
    'suites of cases for an agent: try them, grade them, compare two runs',
    {
      only: { ...value('CASE', 'run: only this case; a * at the end stands for the rest of its name'), multiple: true },
      trials: value('N', 'run: try each case so often'),
      how: value('MODE', 'run: live (default), replayed: tools answer from recordings, recorded: nothing runs'),
      baseline: value('FILE', 'run: a report of this suite, which the gate compares with'),
      report: { ...value('FILE', 'run: write the report as .json, .md or .xml (JUnit)'), multiple: true },
      id: value('CASE', 'add: the name of the case (default: the id of the session)'),
      model: drivingFlags.model,
      mode: driving.mode,
      quiet: driving.quiet,
    },
  ),
  worktree: entry(
    '[list | merge ID | discard ID]',
    [0, 2],
    'worktrees of subagents in this folder: look, merge, remove',
    {
      force: flag('discard: lose the changes in it'),
    },
  ),
  mcp: entry(
    'add|list|call|approve|remove|serve [NAME] [-- COMMAND…]',
    [1, MANY],
    'MCP servers of the configuration; or be one',
    {
      ...serveFlags,
      url: value('URL', 'add: a server that is reached by HTTP'),
      env: { ...value('NAME', 'add: a variable the server gets from your environment'), multiple: true },
      header: { ...value('NAME=VARIABLE', 'add: a header whose value is in this variable'), multiple: true },
      required: flag('add: no run begins without it'),
      unchecked: flag('add: do not connect to it first'),
    },
  ),
  acp: protocolEntry('', [0, 0], 'serve an editor by the Agent Client Protocol, on standard input and output', {
    ...servingFlags,
    agent: value('ID', 'as this agent of `terret agents`'),
    'in-terminal': value(
      'FOLDER',
      'used by terret itself: run the command that waits in this folder, in a terminal of the editor',
    ),
  }),
  trust: entry('[PATH]', [0, 1], 'trust a folder: its configuration, AGENTS.md and keys are read', {
    remove: flag('trust it no longer'),
    list: flag('show the folders that are trusted'),
  }),
  model: entry('[NAME]', [0, 1], 'the model of your configuration; with NAME, choose another one'),
  models: entry('[HOST]', [0, 1], 'the hosts of models; or what a host offers, with context window and price'),
  'crash-test': entry('FILE', [1, 1], 'crash the agent of a file at every point, and say which rules did not hold', {
    process: flag('kill real processes with SIGKILL, on SQLite; slower'),
    at: value('N', 'only the point with this number; 0 is the run without a crash'),
  }),
  doctor: entry('', [0, 0], 'check the store, the sandbox, ripgrep and each model; or a session', {
    session: value('ID', 'look at the log of this session'),
    store: value('FILE', 'in this file instead of the data folder'),
    'accept-store': flag('go on with the database as it is now, also if it is another one or an older copy'),
    model: { ...driving.model, multiple: true },
  }),
  store: entry(
    'check [--repair] | backup FILE | move --to STORE | archive --older DAYS --to DIR | restore DIR',
    [1, 2],
    'check all that the store holds; copy its file, checked, while workers run; move it to another store, proven; keep old sessions in files, and bring them back',
    {
      store: value('STORE', 'check, backup, move: this store instead: postgres://USER@HOST/DATABASE, or a file'),
      to: value('STORE', 'move: where to; a new file, or an empty database. archive: the folder for the files'),
      repair: flag('check: bring cards up to date that an earlier version wrote'),
      older: value('DAYS', 'archive: sessions with nothing left to do and no event for so many days'),
      by: value('WHO', 'archive: who does it (default: your user name)'),
    },
  ),
  completion: entry('bash|zsh|fish', [1, 1], 'print a completion script'),
  demo: entry('', [0, 0], 'the first minute: a report whose worker processes are killed, and nothing is lost', {
    open: flag('open the inspector in your browser when it asks'),
  }),
  version: entry('', [0, 0], 'print the version'),
  help: entry('[COMMAND]', [0, 1], 'show help'),
}

/** Commands that work with a remote server in the same way as here. */
const FAR = new Set(
  (
    'interactive run resume wake interrupt approve reject answer rename fork undo pin delete ' +
    'list inspect pending tail history export tasks handoffs letters board cron help'
  ).split(' '),
)

export function worksRemotely(command: string): boolean {
  return FAR.has(command)
}
