// Finds words that report a failure. A word inside a name (`http-errors`, `@scope/error`) is not a signal, and neither
// is a statement that there is no trouble (`0 errors`, `level: info`).

/** `grave`: more than an error, such as a crash or a message of the level "critical". */
export type TroubleSignal = 'grave' | 'strong' | 'weak' | null

const NAMED_ERROR = /(?:error|exception)s?(?![-/@\w])(?<![-/@]\w{0,60})/i

const WORDS = [
  'fatal|panic(?:ked|s)?|traceback|fail(?:ed|ure|ures|ing|s)?|critical|emerg(?:ency)?|severe',
  'segmentation fault|segfault|core dumped|killed|oom\\w{0,10}|out of memory|sig(?:segv|kill|abrt|bus|ill|term)',
  'abort(?:ed|ing)?|denied|declined|refused|forbidden|unauthorized|unauthenticated|unreachable|unavailable',
  "deadlock(?:ed)?|corrupt(?:ed|ion)?|conflicts?|rejected|cannot|can['’]t|could not|unable to|not found|no such",
  'no space|read-only|disk full|quota|undefined|unhandled\\w{0,20}|uncaught|unresolved|unmet|invalid|illegal|malformed',
  'mismatch(?:ed)?|did not match|timed out|timeout|crash\\w{0,20}|\\w{0,20}backoff|back-off|restarting|unhealthy|stuck',
  'rolled back|rollback|must be replaced|forces replacement|to destroy|missing|unexpected|assert\\w{0,20}',
  'expected .{1,60} (?:got|to be|but)|does not exist|already exists|not a git|too (?:many|large|long)|exceed(?:ed|s)',
  'overflow|violat\\w{1,10}|lost|leak\\w{0,8}|vulnerab\\w{1,10}|cve-\\d+-\\d+|expired|untrusted|defunct|hung up|dropped',
  'exit(?:ed)?(?: with)?(?: code| status)?[ =][1-9]\\d{0,2}|status[=: ]{1,2}[45]\\d\\d|http\\/\\S{1,4}"? [45]\\d\\d',
  'e[a-z]{2,12}(?:refused|reset|noent|acces|perm|timedout|exist|inuse|pipe|mfile|unreach)|enoent|eacces|eperm|enospc',
  'emfile|eresolve|eio|ora-\\d+|e\\d{4}|ts\\d{4}|suspicious|fraud|suspended|degraded|evicted|pending reboot|needs merge',
  'uninitiali[sz]ed|double free|use after free|signal \\d{1,2}|out of (?:range|bounds)',
  'unmerged|deleted by us|both modified|unsupported|incompatible|not ready|not responding|bad gateway',
]
const STRONG = new RegExp(`(?<![-/@.\\w])(?:${WORDS.join('|')})(?![-/@\\w])`, 'i')
/** Names of levels above an error, only where they are used as levels. */
const LEVEL =
  '[[<|](?:alert|crit|emerg)[\\]>|]|\\b(?:ALERT|CRIT|EMERG)\\b|\\b(?:level|severity)["\']?[=:] ?["\']?(?:alert|crit|emerg)'
const SIGNS = new RegExp(`\\bERR!|[✗✘✖×]|^\\s{0,12}not ok\\b|^E {3}|##\\[error\\]|${LEVEL}`)
/** Words for the end of a process or the loss of data, and the levels above an error. */
const GRAVE = new RegExp(
  `${LEVEL}|\\b(?:CRITICAL|EMERGENCY|FATAL|PANIC)\\b|(?<![-/@.\\w])(?:fatal|panic(?:ked)?|segmentation fault|segfault|core dumped|out of memory|[Ss]ignal \\d{1,2}|SIG(?:SEGV|KILL|ABRT|BUS|ILL)|data race|corrupt(?:ed|ion)|deadlock|Killed|Out of memory|Segmentation fault|DATA RACE)(?![-/@\\w])`,
)
const WEAK = /\b(?:warn(?:ing)?s?|deprecated|retry(?:ing)?|skipped|slow|caused by|root cause|todo|fixme)\b/i
const NO_TROUBLE =
  /\b(?:0|no|without)(?: an?| any)? (?:\w{1,20} )?(?:errors?|failures?|failed|warnings?|vulnerabilities|conflicts?)\b|\b(?:errors?|failures?|failed|warnings?|level|fail)["']?[:=] ?["']?(?:0|info|debug|none|null|false)\b/gi
/** The characters of a line that are searched. */
const LOOKED_CHARS = 600
/** The characters of a long value that are searched. */
const SEARCHED_CHARS = 4_000

export function findSignal(text: string): TroubleSignal {
  const said = text.length > LOOKED_CHARS ? text.slice(0, LOOKED_CHARS) : text
  const line = said.replace(NO_TROUBLE, '')
  if (SIGNS.test(line) || NAMED_ERROR.test(line) || STRONG.test(line)) return GRAVE.test(line) ? 'grave' : 'strong'
  return WEAK.test(line) ? 'weak' : null
}

/** A signal of a failure, and not only of a warning. */
export function isTroubleSignal(signal: TroubleSignal): boolean {
  return signal === 'strong' || signal === 'grave'
}

/** The position of the first strong signal of a text; -1 if its first part has none. */
export function signalPosition(text: string): number {
  const said = text.slice(0, SEARCHED_CHARS)
  const places = [SIGNS, NAMED_ERROR, STRONG].map((pattern) => said.search(pattern)).filter((place) => place >= 0)
  return places.length === 0 ? -1 : Math.min(...places)
}

/** A line of a stack trace below the line that names the error. */
export const FRAME =
  /^\s+(?:at |File "|in |from |#?\d+:? +(?=0x|[A-Za-z_<{([*&$~])|→|❯|\.\.\. \d+ (?:more|lines))|^\s*(?:Caused by|During handling|The above exception|goroutine )/
/** A line that names the cause of an error inside of a stack trace. */
export const CAUSE = /^\s*(?:Caused by|\[?cause\]?:|[\w.]{1,80}(?:Error|Exception)\b)/
