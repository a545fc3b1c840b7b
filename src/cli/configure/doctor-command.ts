// `terret doctor`: checks everything that a run needs: the store, the sandbox, ripgrep, and each model with one tiny
// call. With --session it checks a log.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type DiskSpace, diskTrouble } from '../state/disk-space.ts'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Card, ModelFailure, Store, StoreHealth } from '../../kernel/index.ts'
import { endpointsOf, modelsFor, routesFor } from '../state/folder-agent.ts'
import type { CommandArgs } from '../args.ts'
import { oneLine, shownId } from '../../view/clean.ts'
import type { McpEntry } from '../state/config.ts'
import { EXIT, exitForError } from '../exit.ts'
import { findHome, makeHome } from '../state/cli-home.ts'
import { hasStoreFile, prepareHome, locateStore, withStoreToRead, findSession } from '../state/command-context.ts'
import { print, printJson, terretCommand } from '../present/print.ts'
import { timerClock, makeServer, toolNamesText, tryConnection } from '../state/mcp-servers.ts'
import { readSeenMark, whyStoreDiffers, writeSeenMark } from '../state/store-fingerprint.ts'
import { openStoreFile, openStore, parseStore } from '../state/store-location.ts'
import { type FolderSetup, readSetupHere } from '../state/folder-setup.ts'
import { smallestWindow } from '../state/context-size.ts'
import { parseArgs } from 'node:util'
import { type Event, Fault, listModels, type RoutedWorkload, routeProfiles } from '../../index.ts'
import { nearest } from '../../options.ts'
import { type Examination, examineLog } from '../../replay.ts'
import { callModelOnce } from './try-model.ts'
import { workspaceFolder } from '../state/workspace.ts'

type FindingStatus = 'ok' | 'mock' | 'missing' | 'misconfigured' | 'model_missing'
type Finding = { readonly what: string; readonly status: FindingStatus; readonly detail: string }

export async function doctorCommand(call: CommandArgs): Promise<number> {
  if (call.is('accept-store')) return acceptStore(call)
  const session = call.text('session')
  if (session !== undefined) return examineNamedSession(call, session)
  const findings: Finding[] = [
    ...(await storeFindings()),
    await sandboxFinding(),
    await ripgrepFinding(),
    ...(await folderFindings(call)),
  ]
  for (const { what, status, detail } of findings) {
    if (call.is('json')) printJson({ what, status, detail })
    else print(`${what.padEnd(28)}  ${status.padEnd(13)}  ${oneLine(detail, 400)}`.trimEnd())
  }
  // Without a sandbox `bash` asks for every command; a broken sandbox is worse than none.
  const sound = findings.every(({ status }) => status === 'ok' || status === 'mock' || status === 'missing')
  return sound ? EXIT.ok : EXIT.failed
}

async function examineNamedSession(call: CommandArgs, name: string): Promise<number> {
  const file = call.text('store')
  const json = call.is('json') ? ['--json'] : []
  const look = async (session: string, database: string): Promise<number> => {
    const { text, code } = await examineSessionLog(['--session', session, '--store', database, ...json])
    print(...text.split('\n'))
    return code
  }
  if (file !== undefined) return look(name, file)
  const { session, at } = await withStoreToRead(async (place) => {
    return { session: (await findSession(place, name)).session, at: place.at }
  })
  return look(session, at?.type === 'postgres' ? at.url : (at?.file ?? ''))
}

/** The user accepts that actions since then may be repeated. */
async function acceptStore(call: CommandArgs): Promise<number> {
  const { home, at } = locateStore()
  makeHome(home)
  if (at.type === 'postgres') {
    rmSync(at.seen, { force: true })
    if (call.is('json')) printJson({ database: at.shown, accepted: null })
    else
      print(
        `Whatever is in ${oneLine(at.shown, 400)} is accepted. If it has no store, the next command makes a new one.`,
      )
    return EXIT.ok
  }
  if (!existsSync(home.database)) {
    rmSync(home.seen, { force: true })
    rmSync(`${home.database}-mark`, { force: true })
    if (call.is('json')) printJson({ database: home.database, accepted: null })
    else print('There is no database. The next run makes a new one.')
    return EXIT.ok
  }
  const file = await openStoreFile(at)
  try {
    const mark = await file.mark()
    writeSeenMark(home, mark)
    rmSync(`${home.database}-mark`, { force: true })
    if (call.is('json')) printJson({ database: home.database, accepted: mark })
    else print(`Accepted ${oneLine(home.database, 400)} as it is now.`)
  } finally {
    await file.close()
  }
  return EXIT.ok
}

async function storeFindings(): Promise<readonly Finding[]> {
  const what = 'store'
  try {
    const { home, at } = locateStore()
    prepareHome(home, true)
    const seen = at.type === 'file' && hasStoreFile(home) ? readSeenMark(home) : null
    const file = at.type === 'file' ? await openStoreFile(at) : null
    const open = file ?? (await openStore(at))
    try {
      const cards = await open.list({ limit: SESSIONS_MAX })
      const count = cards.length === SESSIONS_MAX ? `${SESSIONS_MAX} or more` : cards.length
      const wrong = (file && seen && (await whyStoreDiffers(file, seen))) ?? (await open.moved())
      const detail = wrong || `${at.shown}, ${count} sessions${backlogText(await open.health())}`
      const about: Finding = { what, status: wrong ? 'misconfigured' : 'ok', detail }
      return [about, ...diskFindings(home.folder), ...(await damageFindings(open, cards))]
    } finally {
      await open.close()
    }
  } catch (error) {
    return [{ what, status: 'misconfigured', detail: exitForError(error).text }]
  }
}

/** The number of due sessions that no worker drives, and the connections of a database. */
function backlogText({ due, waitedMs, network }: StoreHealth): string {
  const waited = due === 0 ? '' : `, ${due} due without a worker, for up to ${Math.ceil(waitedMs / 1_000)} s`
  if (!network) return waited
  const { connections, connectionsMax } = network.server
  return `${waited}, ${connections} of ${connectionsMax} connections`
}

const SESSIONS_MAX = 1_000
const ROOM_BYTES_MIN = 100 * 1024 * 1024

/** Empty if there is enough space. */
export function diskFindings(folder: string, left?: DiskSpace): readonly Finding[] {
  const detail = diskTrouble(folder, ROOM_BYTES_MIN, left)
  return detail === null ? [] : [{ what: 'disk', status: 'misconfigured', detail }]
}

/** Reads every log, because only that finds damage. */
async function damageFindings(file: Store, cards: readonly Card[]): Promise<readonly Finding[]> {
  const found: Finding[] = []
  for (const { session, trouble } of cards) {
    const reason = trouble?.reason.startsWith('The session is damaged')
      ? trouble.reason
      : await findDamage(file, session)
    if (reason === null) continue
    const [look, remove] = [terretCommand`doctor --session ${session}`, terretCommand`delete ${session}`]
    const help = `\`${look}\` shows what can be read. Restore the database from a backup, or remove it with \`${remove}\`.`
    found.push({ what: `session ${shownId(session)}`, status: 'misconfigured', detail: `${reason} ${help}` })
  }
  return found
}

const PAGE = 1_000

async function findDamage(file: Store, session: string): Promise<string | null> {
  for (let after = 0; ; ) {
    const { events, damaged: harm } = await file.read(session, after, PAGE)
    if (harm) return `Its log is damaged at event ${harm.seq}: ${harm.reason}.`
    const last = events.at(-1)
    if (last === undefined || events.length < PAGE) return null
    after = last.seq
  }
}

/** Tests the sandbox, not only its presence. Without one, `bash` asks for every command. */
async function sandboxFinding(): Promise<Finding> {
  const what = 'sandbox'
  const [{ findSandbox }, { testSandboxAnew }] = await Promise.all([
    import('../../tools/shell/sandbox.ts'),
    import('../../tools/shell/sandbox-check.ts'),
  ])
  const found = findSandbox(workspaceFolder())
  if (found.type === 'none') return { what, status: 'missing', detail: `${found.reason}; bash asks for every command` }
  const verdict = await testSandboxAnew(found.path, timerClock)
  if (verdict.type === 'sound') return { what, status: 'ok', detail: found.path }
  return { what, status: 'misconfigured', detail: verdict.reason }
}

async function ripgrepFinding(): Promise<Finding> {
  const folder = mkdtempSync(join(tmpdir(), 'terret-doctor-'))
  const found: string[] = []
  try {
    writeFileSync(join(folder, 'a.txt'), 'needle\n')
    const { runRipgrep: search } = await import('../../tools/files/ripgrep.ts')
    const record = (text: string): boolean => found.push(text) < 10
    const signal = AbortSignal.timeout(10_000)
    await search({ file: null, args: ['needle', 'a.txt'], cwd: folder, stdin: null, separator: '\n', signal, record })
    return {
      what: 'ripgrep',
      status: found.length > 0 ? 'ok' : 'misconfigured',
      detail: found.length > 0 ? '' : 'it found nothing',
    }
  } catch (error) {
    return { what: 'ripgrep', status: 'misconfigured', detail: error instanceof Error ? error.message : String(error) }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The models and MCP servers of this folder's configuration. */
async function folderFindings(call: CommandArgs): Promise<readonly Finding[]> {
  let setup: FolderSetup
  try {
    setup = await readSetupHere()
  } catch (error) {
    return [{ what: 'configuration', status: 'misconfigured', detail: exitForError(error).text }]
  }
  const wanted = call.texts('model')
  const names = wanted.length > 0 ? wanted : (setup.settings.model ?? [])
  const none: Finding = {
    what: 'model',
    status: 'misconfigured',
    detail: `No model is chosen. Run \`${terretCommand`init`}\`.`,
  }
  const models = names.length === 0 ? [none] : names.map((name) => modelFinding(setup, name))
  const routes = await routeFindings(setup)
  const servers = Object.entries(setup.settings.mcp ?? {}).map(([name, entry]) => serverFinding(setup, name, entry))
  return Promise.all([...models, ...routes, ...servers])
}

/** The model of each workload, and whether the models of the routes answer. */
async function routeFindings(setup: FolderSetup): Promise<readonly (Finding | Promise<Finding>)[]> {
  const { routes } = setup.settings.models ?? {}
  if (routes === undefined) return []
  try {
    const resolved = (await routeProfiles(await routesFor(setup))).map(routeFinding)
    const named = Object.values(routes).filter((name) => !name.startsWith('hint:'))
    const others = [...new Set(named)].filter((name) => !setup.settings.model?.includes(name))
    return [...resolved, ...others.map((name) => modelFinding(setup, name))]
  } catch (error) {
    return [{ what: 'routes', status: 'misconfigured', detail: exitForError(error).text }]
  }
}

function routeFinding({ workload, of, profile, behind }: RoutedWorkload): Finding {
  const what = `route ${workload}`
  if (profile === null) {
    const otherwise = workload === 'vision' ? 'a run that asks for it with a picture is refused' : 'the model answers'
    return { what, status: 'missing', detail: `not set: ${otherwise}` }
  }
  const { model, contextTokens, images, reasoning, price, priceKnown } = profile
  const window = contextTokens === null ? 'window not known' : `${Math.round(contextTokens / 1_000)}k tokens`
  const able = [images === false ? 'no pictures' : '', reasoning === null ? '' : reasoning ? 'reasons' : 'no reasoning']
  const cost = priceKnown ? `$${price.input} in, $${price.output} out a million` : 'price not known'
  const name = of === workload ? model : `${model} (route ${of})`
  const next = behind === null ? '' : `; then ${behind}`
  return { what, status: 'ok', detail: `${[name, window, ...able, cost].filter(Boolean).join(', ')}${next}` }
}

/** An optional server that is missing is not a failure. */
async function serverFinding(setup: FolderSetup, name: string, entry: McpEntry): Promise<Finding> {
  const what = `mcp ${oneLine(name)}`
  const down = entry.required ? 'misconfigured' : 'missing'
  try {
    const { state, tools, detail } = await tryConnection(await makeServer(setup, name, entry))
    const trouble = detail === '' ? '' : `. ${detail}`
    if (state === 'usable') return { what, status: 'ok', detail: `${toolNamesText(tools)}${trouble}` }
    const way = state === 'changed' ? ` ${terretCommand`mcp approve ${oneLine(name)}`} shows what changed.` : ''
    return { what, status: down, detail: `${detail}${way}` }
  } catch (error) {
    return { what, status: down, detail: exitForError(error).text }
  }
}

async function modelFinding(setup: FolderSetup, name: string): Promise<Finding> {
  const what = `model ${name}`
  try {
    const [model] = await modelsFor(setup, { models: [name] })
    if (!model) throw new Error('There is no model.')
    if (model.name === 'offline') return { what, status: 'mock', detail: 'answers by fixed rules, without a network' }
    const [answer, offer] = await Promise.all([callModelOnce(model, 'doctor'), offeredModels(setup, name)])
    if (answer.type === 'reply')
      return { what, status: 'ok', detail: [...countText(offer), ...(await windowText(setup, name, offer))].join('; ') }
    const status = findingStatus(answer)
    const hint = status === 'model_missing' ? nearestModelText(name, offer) : ''
    return { what, status, detail: `${answer.message}${hint}` }
  } catch (error) {
    return { what, status: 'misconfigured', detail: exitForError(error).text }
  }
}

type HostModel = { readonly id: string; readonly contextTokens?: number }

/** The models of its host; empty if the host does not list them. */
async function offeredModels(setup: FolderSetup, name: string): Promise<readonly HostModel[]> {
  const host = name.split(':')[0] ?? ''
  try {
    const { headers } = setup.settings
    const own = await endpointsOf(setup.settings)
    const offer = await listModels(host, { endpoints: own, env: setup.env, ...(headers ? { headers } : {}) })
    return offer.type === 'models' ? offer.models : []
  } catch {
    return []
  }
}

function countText(offer: readonly HostModel[]): readonly string[] {
  return offer.length === 0 ? [] : [`its host offers ${offer.length} models`]
}

/** A model of unknown size is not compacted in time. The host was asked anyway, so its number is reported. */
async function windowText(setup: FolderSetup, name: string, offer: readonly HostModel[]): Promise<readonly string[]> {
  const { tokens, compacts } = await smallestWindow(setup, [name])
  if (!compacts || Number.isFinite(tokens)) return []
  const { contextTokens: said } = offer.find(({ id }) => name.endsWith(`:${id}`)) ?? {}
  const size =
    said === undefined ? 'how many tokens it takes is not known' : `its host says that it takes ${said} tokens`
  return [`${size}: set context.compaction.windowTokens, so that long sessions are compacted in time`]
}

/** Names a similar model of the host, if there is one, and how many it offers. */
function nearestModelText(name: string, offer: readonly HostModel[]): string {
  if (offer.length === 0) return ''
  const host = name.split(':')[0] ?? ''
  const near = nearest(
    name.slice(host.length + 1),
    offer.map(({ id }) => id),
  )
  const meant = near === null ? '' : ` Did you mean ${host}:${near}?`
  return `${meant} ${terretCommand`models ${host}`} lists what it offers: ${offer.length} models.`
}

/** Distinguishes an unknown model from a host that does not answer or refuses the key. */
function findingStatus({ class: kind, message }: ModelFailure): FindingStatus {
  const unknown =
    /model/i.test(message) && /not[ _]found|does not exist|unknown|not supported|no such|invalid model/i.test(message)
  return kind === 'bad_request' && (unknown || /HTTP 404/.test(message)) ? 'model_missing' : 'misconfigured'
}

// `--session`: one line for each problem of a log. It only reads.

/** Returns the output and the exit code: 1 if the log has a problem. */
export async function examineSessionLog(
  args: readonly string[],
): Promise<{ readonly text: string; readonly code: number }> {
  const options = { session: { type: 'string' }, store: { type: 'string' }, json: { type: 'boolean' } } as const
  const { session, store, json } = parseArgs({ args: [...args], options }).values
  if (!session || !store) throw new TypeError('Say which session to look at: terret doctor --session ID --store FILE.')
  const at = parseStore(findHome(), store, { what: '--store', from: process.cwd() })
  if (at.type === 'file' && !existsSync(at.file)) throw new Fault('invalid_input', `There is no file ${store}.`)
  const { events, damage } = await readLog(await openStore(at), session)
  if (events.length === 0 && damage === null) throw new Fault('session_missing', `There is no session ${session}.`)
  const examination = examineLog(events)
  const code = damage === null && examination.findings.length === 0 ? 0 : 1
  if (json) return { text: JSON.stringify({ session, damage, ...examination }, null, 2), code }
  return { text: examinationLines(examination, damage).join('\n'), code }
}

type LogContent = { readonly events: readonly Event[]; readonly damage: string | null }

async function readLog(store: Store, session: string): Promise<LogContent> {
  const events: Event[] = []
  try {
    for (;;) {
      const page = await store.read(session, events.at(-1)?.seq ?? 0, PAGE)
      events.push(...page.events)
      const { damaged } = page
      if (damaged)
        return {
          events,
          damage: `Event ${damaged.seq}: it is damaged, and nothing after it is read. ${damaged.reason}`,
        }
      if (page.events.length < PAGE) return { events, damage: null }
    }
  } finally {
    await store.close()
  }
}

const SENT = {
  recorded: 'can be sent as it is',
  mended: 'can be sent mended',
  nothing: 'has nothing to send yet',
} as const

function examinationLines({ findings, open, protocols, view }: Examination, damage: string | null): readonly string[] {
  const wrong = [...findings.map(({ text }) => text), ...(damage === null ? [] : [damage])]
  return [
    ...(wrong.length > 0 ? wrong : [`Nothing is wrong with its ${view.length} messages.`]),
    ...open.map((call) => `Call ${call} is not over yet.`),
    ...protocols.map(
      ({ protocol, as, why }) => `${protocol}: ${as === 'refused' ? `cannot be sent: ${why}` : SENT[as]}`,
    ),
  ]
}
