// `terret store check`: reads all that the store holds and says what is wrong. `terret store move --to STORE`: takes all of it to another
// store, proves that it arrived, and leaves the old one to be read only. `archive` and `restore` are archive.ts.
import { rmSync } from 'node:fs'
import { resolve } from 'node:path'
import type { StoreCheck, StoreCounts } from '../../replay.ts'
import type { Call } from '../args.ts'
import { nearest } from '../../options.ts'
import { clean, oneLine } from '../../view/clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { counterOn } from '../present/counter.ts'
import { print, printJson, typed, warn } from '../present/print.ts'
import { homeOf } from '../state/home.ts'
import { placed } from '../state/place.ts'
import {
  homeWith,
  openFile,
  openReader,
  openSource,
  openStore,
  openTarget,
  passwordIn,
  refuseNoStore,
  storeNamed,
  type StorePlace,
} from '../state/store-place.ts'
import { keepSeen, seenIn, unlike } from '../state/store-fingerprint.ts'

export async function store(call: Call): Promise<number> {
  const [what = '', more] = call.words
  const wants = KINDS[what]
  if (wants === undefined) {
    const meant = nearest(what, Object.keys(KINDS))
    const hint = meant === null ? `Usage: ${USAGE}` : `Did you mean \`terret store ${meant}\`?`
    throw new Refusal(EXIT.usage, `There is no \`terret store ${oneLine(what, 40)}\`. ${hint}`)
  }
  if (call.is('repair') && what !== 'check')
    throw new Refusal(EXIT.usage, `\`terret store ${what}\` takes no --repair. Usage: ${USAGE}`)
  const stray = ['to', 'older', 'store', 'by'].find((flag) => call.text(flag) !== undefined && !wants.includes(flag))
  if (stray !== undefined)
    throw new Refusal(EXIT.usage, `\`terret store ${what}\` takes no --${stray}. Usage: ${USAGE}`)
  if (more !== undefined && what !== 'restore' && what !== 'backup')
    throw new Refusal(EXIT.usage, `Wrong number of arguments. Usage: ${USAGE}`)
  if (what === 'archive') return (await import('./archive.ts')).archive(call)
  if (what === 'restore') return (await import('./archive.ts')).restore(call)
  const at = placeIn(call, 'store') ?? placed().at
  if (what === 'check') return check(call, at)
  if (what === 'backup') return backUp(call, at, more)
  const to = placeIn(call, 'to')
  if (to === null) throw new Refusal(EXIT.usage, `--to is missing. Usage: ${USAGE}`)
  return move(call, at, to)
}

/** The flags that each takes. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  check: ['store'],
  backup: ['store'],
  move: ['store', 'to'],
  archive: ['older', 'to', 'by'],
  restore: [],
}
const USAGE =
  'terret store check [--repair] | backup FILE | move --to STORE | archive --older DAYS --to DIR | restore DIR'

/** A store that a flag names. */
function placeIn(call: Call, flag: string): StorePlace | null {
  const given = call.text(flag)
  if (given === undefined) return null
  const place = storeNamed(homeOf(), given, { what: `--${flag}`, from: process.cwd() })
  if (hasPassword(place))
    warn(
      `Other users of this machine can see the password in --${flag}. PGPASSWORD, or a file .pgpass, keeps it from them.`,
    )
  return place
}

async function check(call: Call, at: StorePlace): Promise<number> {
  if (at.type === 'file') await refuseNoStore(at)
  const { problems, behind, repaired, ...counts } = await runCheck(call, at, call.is('repair'))
  if (call.is('json')) printJson({ store: at.shown, ...counts, problems, behind: behind - repaired, repaired })
  else {
    for (const { what, text } of problems) print(clean(`${what}: ${text}`))
    const wrong = problems.length > 0 ? `${count(problems.length, 'problem')}.` : 'Nothing is wrong.'
    const old = behind > repaired ? `${cards(behind - repaired)} of an earlier version.` : wrong
    print(`${clean(at.shown)}: ${countsText(counts)}. ${problems.length > 0 ? wrong : old}`)
    if (repaired > 0) print(`${cards(repaired)} brought up to date.`)
    if (behind > repaired) warn(call.is('repair') ? LEFT_BEHIND : describeBehind())
    if (problems.length > 0) warn(describeRestore())
  }
  return problems.length === 0 ? EXIT.ok : EXIT.failed
}

function describeBehind(): string {
  const repair = typed`store check --repair`
  return `Lists by outcome, such as \`unknown\`, miss sessions whose cards are of an earlier version. \`${repair}\` brings the cards up to date, also while workers run.`
}

const LEFT_BEHIND =
  'A session that is driven brings its card up to date by itself. Run this again later for the others.'

function cards(n: number): string {
  return n === 1 ? '1 card is' : `${number(n)} cards are`
}

function countsText({ sessions, events, blobs, accounts, holds }: StoreCounts): string {
  const all = { session: sessions, event: events, blob: blobs, account: accounts, hold: holds }
  return Object.entries(all)
    .map(([what, n]) => count(n, what))
    .join(', ')
}

type Checked = Omit<StoreCheck, 'behind'> & { readonly behind: number; readonly repaired: number }

/** Reads everything that is in the store, and shows how far it is. */
async function runCheck(call: Call, at: StorePlace, repairs = false): Promise<Checked> {
  const { checkStore, repairCard } = await import('../../replay.ts')
  const counter = counterOn(process.stderr, call.is('json'))
  const open = await openStore(at)
  try {
    await open.open()
    const reader = await openReader(at, open)
    try {
      const { behind, ...found } = await checkStore(open, reader, ({ sessions, events }) =>
        counter.show(() => `Checked ${count(sessions, 'session')}, ${count(events, 'event')}…`),
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

/** A copy of the file as it is now, while others write to it, checked before it gets its name. */
async function backUp(call: Call, from: StorePlace, named: string | undefined): Promise<number> {
  if (named === undefined) throw new Refusal(EXIT.usage, `The file for the backup is missing. Usage: ${USAGE}`)
  if (from.type !== 'file') throw new Refusal(EXIT.usage, BACKUP_OF_DATABASE)
  await refuseNoStore(from)
  await refuseUnlike(from)
  const { backUpFile } = await import('../../stores/sqlite/backup.ts')
  const to = resolve(named)
  const results: Checked[] = []
  await backUpFile(from.file, to, async (copy) => {
    results.push(await runCheck(call, storeNamed(homeOf(), copy, { what: 'FILE', from: process.cwd() })))
  })
  const problems = results.flatMap((each) => each.problems)
  for (const { problems: found, behind: _behind, repaired: _repaired, ...counts } of results) {
    if (call.is('json')) printJson({ from: from.shown, to, ...counts, problems: found })
    else print(`${clean(to)}: ${countsText(counts)}. ${found.length === 0 ? 'Nothing is wrong.' : ''}`.trimEnd())
  }
  if (problems.length === 0) return EXIT.ok
  // A store with a damaged session must be possible to back up, and nobody may believe that the copy is whole.
  for (const { what, text } of problems) warn(clean(`${what}: ${text}`))
  warn(`The backup was made, with what is wrong in the store. ${describeRestore()}`)
  return EXIT.failed
}

const BACKUP_OF_DATABASE =
  'A store in Postgres is backed up by its own programs: `pg_basebackup -c fast`, or `pg_dump`. The guide on operations says how.'

function describeRestore(): string {
  const [keep, remove] = [typed`export ID`, typed`delete ID`]
  return `Restore the store from a backup. Without one: \`${keep}\` keeps what can be read of a session, \`${remove}\` takes it out.`
}

async function move(call: Call, from: StorePlace, to: StorePlace): Promise<number> {
  if (from.type === 'file') await refuseNoStore(from)
  await refuseUnlike(from)
  const { moveStore } = await import('../../stores/move/move.ts')
  const json = call.is('json')
  const counter = counterOn(process.stderr, json)
  const tell = (step: 'copy' | 'prove', events: number, of: number): void =>
    counter.show(() => `${step === 'copy' ? 'Copying' : 'Comparing'}: ${number(events)} of ${count(of, 'event')}…`)
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
          `${finished ? 'Finished the move of' : 'Moved'} ${[count(session, 'session'), count(event, 'event'), count(blob, 'blob')].join(', ')}.`,
          `  from    ${clean(from.shown)} (kept; it is read, and takes no writes)`,
          `  to      ${clean(to.shown)}`,
          `  SHA-256 ${digest} on both sides`,
          `From now on: export TERRET_STORE=${word(clean(to.shown))}${notShown(to)}`,
        )
      }
    } finally {
      await target.close()
    }
  } finally {
    counter.clear()
    await source.close()
  }
  await remember(to)
  return EXIT.ok
}

/** A file that was replaced by another one or by an older copy is not moved. */
async function refuseUnlike(from: StorePlace): Promise<void> {
  if (from.type !== 'file') return
  const seen = seenIn(homeWith(homeOf(), from))
  const file = await openFile(from)
  try {
    const wrong = seen && (await unlike(file, seen))
    if (wrong) throw new Refusal(EXIT.store, wrong)
  } finally {
    await file.close()
  }
}

/** Later commands notice if the new file is replaced. */
async function remember(to: StorePlace): Promise<void> {
  // A move gives the database the id of the store that came.
  if (to.type === 'postgres') return rmSync(to.seen, { force: true })
  const file = await openFile(to)
  try {
    await keepSeen(homeWith(homeOf(), to), file).catch(() => {})
  } finally {
    await file.close()
  }
}

function hasPassword(place: StorePlace): boolean {
  return place.type === 'postgres' && passwordIn(place) !== null
}

/** What of the address is not shown, and still belongs to it. */
function notShown(place: StorePlace): string {
  const parts = [
    ...(hasPassword(place) ? ['its password'] : []),
    ...(place.type === 'postgres' && place.url.includes('?') ? ['what you gave after the "?"'] : []),
  ]
  return parts.length === 0 ? '' : ` (with ${parts.join(' and ')})`
}

/** As a shell takes it. */
function word(text: string): string {
  return /^[\w./@+:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

function number(n: number): string {
  return n.toLocaleString('en')
}

function count(n: number, what: string): string {
  return `${number(n)} ${what}${n === 1 ? '' : 's'}`
}
