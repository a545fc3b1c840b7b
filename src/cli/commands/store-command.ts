// `terret store check` reads the whole store and reports problems. `terret store move --to STORE` copies it to another
// store, proves that the copy is equal, and leaves the old one read-only. `backup` copies its file. `archiveSessions` and
// `restoreSessions` are in archive-command.ts.
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import type { StoreCheck, StoreCounts } from '../../replay.ts'
import type { CommandArgs } from '../args.ts'
import { nearest } from '../../options.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { openCounter } from '../present/counter.ts'
import { print, printJson, terretCommand, warn } from '../present/print.ts'
import { findHome } from '../state/cli-home.ts'
import { locateStore } from '../state/command-context.ts'
import {
  homeWithStore,
  openStoreFile,
  openReader,
  openSource,
  openStore,
  openTarget,
  passwordIn,
  refuseNoStore,
  parseStore,
  type StoreLocation,
} from '../state/store-location.ts'
import { saveSeenMark, readSeenMark, whyStoreDiffers } from '../state/store-fingerprint.ts'

export async function storeCommand(call: CommandArgs): Promise<number> {
  const [what = '', more] = call.words
  const wants = KINDS[what]
  if (wants === undefined) {
    const meant = nearest(what, Object.keys(KINDS))
    const hint = meant === null ? `Usage: ${USAGE}` : `Did you mean \`terret store ${meant}\`?`
    throw new CliError(EXIT.usage, `There is no \`terret store ${oneLine(what, 40)}\`. ${hint}`)
  }
  if (call.is('repair') && what !== 'check')
    throw new CliError(EXIT.usage, `\`terret store ${what}\` takes no --repair. Usage: ${USAGE}`)
  const stray = ['to', 'older', 'store', 'by'].find((flag) => call.text(flag) !== undefined && !wants.includes(flag))
  if (stray !== undefined)
    throw new CliError(EXIT.usage, `\`terret store ${what}\` takes no --${stray}. Usage: ${USAGE}`)
  if (more !== undefined && what !== 'restore' && what !== 'backup')
    throw new CliError(EXIT.usage, `Wrong number of arguments. Usage: ${USAGE}`)
  if (what === 'archive') return (await import('./archive-command.ts')).archiveSessions(call)
  if (what === 'restore') return (await import('./archive-command.ts')).restoreSessions(call)
  const at = storeFromFlag(call, 'store') ?? locateStore().at
  if (what === 'check') return reportCheck(call, at)
  if (what === 'backup') return backUpStore(call, at, more)
  const to = storeFromFlag(call, 'to')
  if (to === null) throw new CliError(EXIT.usage, `--to is missing. Usage: ${USAGE}`)
  return moveToStore(call, at, to)
}

/** The flags that each subcommand takes. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  check: ['store'],
  backup: ['store'],
  move: ['store', 'to'],
  archive: ['older', 'to', 'by'],
  restore: [],
}
const USAGE =
  'terret store check [--repair] | backup FILE | move --to STORE | archive --older DAYS --to DIR | restore DIR'

/** The store that a flag names. */
function storeFromFlag(call: CommandArgs, flag: string): StoreLocation | null {
  const given = call.text(flag)
  if (given === undefined) return null
  const place = parseStore(findHome(), given, { what: `--${flag}`, from: process.cwd() })
  if (hasPassword(place))
    warn(
      `Other users of this machine can see the password in --${flag}. PGPASSWORD, or a file .pgpass, keeps it from them.`,
    )
  return place
}

async function reportCheck(call: CommandArgs, at: StoreLocation): Promise<number> {
  if (at.type === 'file') await refuseNoStore(at)
  const { problems, behind, repaired, ...counts } = await runCheck(call, at, call.is('repair'))
  if (call.is('json')) printJson({ store: at.shown, ...counts, problems, behind: behind - repaired, repaired })
  else {
    for (const { what, text } of problems) print(clean(`${what}: ${text}`))
    const wrong = problems.length > 0 ? `${amountText(problems.length, 'problem')}.` : 'Nothing is wrong.'
    const old = behind > repaired ? `${cardsText(behind - repaired)} of an earlier version.` : wrong
    print(`${clean(at.shown)}: ${countsText(counts)}. ${problems.length > 0 ? wrong : old}`)
    if (repaired > 0) print(`${cardsText(repaired)} brought up to date.`)
    if (behind > repaired) warn(call.is('repair') ? LEFT_BEHIND : describeBehind())
    if (problems.length > 0) warn(describeRestore())
  }
  return problems.length === 0 ? EXIT.ok : EXIT.failed
}

function describeBehind(): string {
  const repair = terretCommand`store check --repair`
  return `Lists by outcome, such as \`unknown\`, miss sessions whose cards are of an earlier version. \`${repair}\` brings the cards up to date, also while workers run.`
}

const LEFT_BEHIND =
  'A session that is driven brings its card up to date by itself. Run this again later for the others.'

function cardsText(n: number): string {
  return n === 1 ? '1 card is' : `${numberText(n)} cards are`
}

function countsText({ sessions, events, blobs, accounts, holds }: StoreCounts): string {
  const all = { session: sessions, event: events, blob: blobs, account: accounts, hold: holds }
  return Object.entries(all)
    .map(([what, n]) => amountText(n, what))
    .join(', ')
}

type CheckResult = Omit<StoreCheck, 'behind'> & { readonly behind: number; readonly repaired: number }

/** Reads the whole store and shows its progress. */
async function runCheck(call: CommandArgs, at: StoreLocation, repairs = false): Promise<CheckResult> {
  const { checkStore, repairCard } = await import('../../replay.ts')
  const counter = openCounter(process.stderr, call.is('json'))
  const open = await openStore(at)
  try {
    await open.open()
    const reader = await openReader(at, open)
    try {
      const { behind, ...found } = await checkStore(open, reader, ({ sessions, events }) =>
        counter.show(() => `Checked ${amountText(sessions, 'session')}, ${amountText(events, 'event')}…`),
      )
      let repaired = 0
      for (const card of repairs ? behind : []) if (await repairCard(open, card)) repaired += 1
      return { ...found, behind: behind.length, repaired }
    } finally {
      await reader.close()
    }
  } finally {
    counter.clear()
    await open.close()
  }
}

/** Copies the file while other processes write to it, and checks the copy before it gets its name. */
async function backUpStore(call: CommandArgs, from: StoreLocation, named: string | undefined): Promise<number> {
  if (named === undefined) throw new CliError(EXIT.usage, `The file for the backup is missing. Usage: ${USAGE}`)
  if (from.type !== 'file') throw new CliError(EXIT.usage, BACKUP_OF_DATABASE)
  await refuseNoStore(from)
  await refuseUnlike(from)
  const { backUpFile } = await import('../../stores/sqlite/backup.ts')
  const to = resolve(named)
  const results: CheckResult[] = []
  await backUpFile(from.file, to, async (copy) => {
    results.push(await runCheck(call, parseStore(findHome(), copy, { what: 'FILE', from: process.cwd() })))
  })
  const problems = results.flatMap((each) => each.problems)
  for (const { problems: found, behind: _behind, repaired: _repaired, ...counts } of results) {
    if (call.is('json')) printJson({ from: from.shown, to, ...counts, problems: found })
    else print(`${clean(to)}: ${countsText(counts)}. ${found.length === 0 ? 'Nothing is wrong.' : ''}`.trimEnd())
  }
  if (problems.length === 0) return EXIT.ok
  // A store with a damaged session can be backed up, but the command says that the copy is damaged too.
  for (const { what, text } of problems) warn(clean(`${what}: ${text}`))
  warn(`The backup was made, with what is wrong in the store. ${describeRestore()}`)
  return EXIT.failed
}

const BACKUP_OF_DATABASE =
  'A store in Postgres is backed up by its own programs: `pg_basebackup -c fast`, or `pg_dump`. The guide on operations says how.'

function describeRestore(): string {
  const [keep, remove] = [terretCommand`export ID`, terretCommand`delete ID`]
  return `Restore the store from a backup. Without one: \`${keep}\` keeps what can be read of a session, \`${remove}\` takes it out.`
}

async function moveToStore(call: CommandArgs, from: StoreLocation, to: StoreLocation): Promise<number> {
  if (from.type === 'file') await refuseNoStore(from)
  await refuseUnlike(from)
  const { moveStore } = await import('../../stores/move/move-store.ts')
  const json = call.is('json')
  const counter = openCounter(process.stderr, json)
  const tell = (step: 'copy' | 'prove', events: number, of: number): void =>
    counter.show(
      () => `${step === 'copy' ? 'Copying' : 'Comparing'}: ${numberText(events)} of ${amountText(of, 'event')}…`,
    )
  const source = await openSource(from)
  try {
    const target = await openTarget(to)
    try {
      const { digest, counts, bytes, finished } = await moveStore(source, target, Date.now(), tell)
      counter.clear()
      if (json) printJson({ from: from.shown, to: to.shown, digest, ...counts, bytes, finished })
      else {
        const { session, event, blob } = counts
        print(
          `${finished ? 'Finished the move of' : 'Moved'} ${[amountText(session, 'session'), amountText(event, 'event'), amountText(blob, 'blob')].join(', ')}.`,
          `  from    ${clean(from.shown)} (kept; it is read, and takes no writes)`,
          `  to      ${clean(to.shown)}`,
          `  SHA-256 ${digest} on both sides`,
          `From now on: export TERRET_STORE=${quoteForShell(clean(to.shown))}${hiddenPartsText(to)}`,
        )
      }
    } finally {
      await target.close()
    }
  } finally {
    counter.clear()
    await source.close()
  }
  await rememberTarget(to)
  return EXIT.ok
}

/** Refuses to move a file that was replaced by another one or by an older copy. */
async function refuseUnlike(from: StoreLocation): Promise<void> {
  if (from.type !== 'file') return
  const seen = readSeenMark(homeWithStore(findHome(), from))
  const file = await openStoreFile(from)
  try {
    const wrong = seen && (await whyStoreDiffers(file, seen))
    if (wrong) throw new CliError(EXIT.store, wrong)
  } finally {
    await file.close()
  }
}

/** Lets later commands notice if the new file is replaced. */
async function rememberTarget(to: StoreLocation): Promise<void> {
  // A move gives the database the id of the moved store.
  if (to.type === 'postgres') return rmSync(to.seen, { force: true })
  const file = await openStoreFile(to)
  try {
    await saveSeenMark(homeWithStore(findHome(), to), file).catch(() => {})
  } finally {
    await file.close()
  }
}

function hasPassword(place: StoreLocation): boolean {
  return place.type === 'postgres' && passwordIn(place) !== null
}

/** Names the parts of the address that are needed but not shown. */
function hiddenPartsText(place: StoreLocation): string {
  const parts = [
    ...(hasPassword(place) ? ['its password'] : []),
    ...(place.type === 'postgres' && place.url.includes('?') ? ['what you gave after the "?"'] : []),
  ]
  return parts.length === 0 ? '' : ` (with ${parts.join(' and ')})`
}

/** Quotes a word for a shell. */
function quoteForShell(text: string): string {
  return /^[\w./@+:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

function numberText(n: number): string {
  return n.toLocaleString('en')
}

function amountText(n: number, what: string): string {
  return `${numberText(n)} ${what}${n === 1 ? '' : 's'}`
}
