// `terret what-if`: lives a session again from one of its events on, with another model, other instructions or tools. It
// writes nothing to the store, and asks no model and runs no tool unless a flag names it.
import { readFileSync, writeFileSync } from 'node:fs'
import type { ToolMode, WhatIf, WhatIfOptions } from '../../replay.ts'
import type { Comparison } from '../../view/compare-logs.ts'
import { oneLine, safeJson } from '../../view/clean.ts'
import { usdText } from '../../view/usd.ts'
import type { CommandArgs } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { print, printJson, printModelText, printRaw, shortId } from '../present/print.ts'
import { withStoreToRead, findSession, type CommandContext } from '../state/command-context.ts'
import { addAgentsAndBoard } from '../state/defined-agents.ts'
import { readCommandSetup } from '../state/drive-session.ts'
import { makeFolderAgent } from '../state/folder-agent.ts'
import { addMemory } from '../state/folder-memory.ts'
import { remoteClient } from '../state/remote-server.ts'
import { folderOf } from '../state/session-folders.ts'

const MODES: readonly ToolMode[] = ['recorded', 'live', 'recorded_or_live']

export function whatIfCommand(call: CommandArgs): Promise<number> {
  const at = call.count('at')
  if (at === undefined)
    throw new CliError(EXIT.usage, 'Name the last event that stays as it was, as `terret history` shows it: --at SEQ')
  const options = whatIfOptions(call, at)
  return withStoreToRead(async (place) => {
    if (remoteClient(place.store))
      throw new CliError(EXIT.usage, 'Ask what if where the sessions are kept, or in the inspector of that server.')
    const { session, agent } = await findSession(place, call.words[0] ?? '')
    const { whatIf, archiveOf, portableText } = await import('../../replay.ts')
    const own = await agentForWhatIf(place, call, { session, agent })
    try {
      const tried = await whatIf({ store: place.store, session }, { ...options, agent: own.agent })
      const out = call.text('out')
      if (out !== undefined) writeFileSync(out, portableText((await archiveOf(tried.store, session)).records))
      if (call.is('json')) printJson(jsonOf(tried, call))
      else await printTried(tried, call)
      return exitOf(tried)
    } finally {
      await own.close()
    }
  })
}

function whatIfOptions(call: CommandArgs, at: number): Omit<WhatIfOptions, 'agent'> {
  const [usd, message] = [call.text('usd'), call.text('message')]
  const tools = Object.fromEntries(call.texts('tool').map(readToolMode))
  if (usd !== undefined && !(Number(usd) >= 0))
    throw new CliError(EXIT.usage, `--usd must be an amount of dollars, not "${usd}".`)
  return {
    at,
    tools,
    ...(call.is('effects') ? { effects: true } : {}),
    ...(call.is('strict') ? { strict: true } : {}),
    ...(call.is('all') ? { runs: 'all' } : {}),
    ...(usd === undefined ? {} : { usd: Number(usd) }),
    ...(message === undefined ? {} : { message }),
  }
}

function readToolMode(given: string): readonly [string, ToolMode] {
  const [name = '', mode = ''] = given.split('=')
  const found = MODES.find((each) => each === mode.replaceAll('-', '_'))
  if (name !== '' && found) return [name, found]
  throw new CliError(EXIT.usage, `--tool is NAME=recorded, NAME=live or NAME=recorded-or-live, not "${given}".`)
}

type Recorded = { readonly session: string; readonly agent: string }

/** The agent of the session's folder, as it is now. Without --model no key is needed, because no model is asked. */
async function agentForWhatIf(place: CommandContext, call: CommandArgs, { session, agent }: Recorded) {
  const folder = (await folderOf(place, session)) ?? place.folder
  const setup = await readCommandSetup(place, folder, call, { agent })
  const chosen = call.texts('model')
  const keyless = chosen.length === 0
  const models = keyless ? ['offline:any'] : chosen
  const own = await makeFolderAgent(setup, { models, keyless, agent })
  const parts = await addAgentsAndBoard(own, setup, agent, place.store, { keyless: true })
  const { options, close } = await addMemory(parts.options, setup, place.store)
  const { changedAgent } = await import('../../replay.ts')
  const instructions = readInstructions(call.text('instructions'))
  const choices = {
    agent,
    ...(keyless ? {} : { model: options.model }),
    ...(instructions === undefined ? {} : { instructions }),
  }
  return { agent: changedAgent(options, choices), close }
}

/** `@FILE` reads them from a file. */
function readInstructions(given: string | undefined): string | undefined {
  if (!given?.startsWith('@')) return given
  try {
    return readFileSync(given.slice(1), 'utf8')
  } catch (error) {
    throw new CliError(EXIT.missing, `The instructions cannot be read: ${(error as Error).message}`)
  }
}

function jsonOf(tried: WhatIf, call: CommandArgs): object {
  const { session, from, changed, diff, drift, missing, cost, settled, text, parked } = tried
  const name = call.text('case')
  const made = name === undefined ? {} : { case: tried.toCase(name) }
  return { session, from, changed, drift, missing, cost, settled, text, parked, diff, ...made }
}

const LINE_CHARS = 160

async function printTried(tried: WhatIf, call: CommandArgs): Promise<void> {
  for (const line of linesOf(tried)) print(line)
  if (tried.text !== '') await printModelText(`\n${tried.text}`)
  const name = call.text('case')
  if (name !== undefined) printRaw(safeJson(tried.toCase(name)))
}

function linesOf({ session, from, changed, diff, drift, missing, cost, settled, parked }: WhatIf): readonly string[] {
  const end = settled === null ? 'it waits' : settled.type
  return [
    `What if, from event ${from} of ${shortId(session)}: ${end}`,
    ...(changed.length === 0 ? [] : [`changed: ${changed.join(', ')}`]),
    differenceLine(diff),
    `turns ${diff.left.turns} → ${diff.right.turns}, tokens ${diff.left.tokens} → ${diff.right.tokens}, this cost ${usdText(cost * 1e6)}`,
    `drift: ${drift}`,
    ...missing.map(({ tool, args }) =>
      tool === undefined
        ? '  no recorded reply to a request that is different: choose a model with --model'
        : `  no recorded result: ${oneLine(tool)} ${oneLine(JSON.stringify(args ?? null), LINE_CHARS)}`,
    ),
    ...parked.map(({ tool, why }) => `waits: ${oneLine(tool)}. ${why}`),
  ]
}

function differenceLine({ pairs, first }: Comparison): string {
  const pair = first === null ? undefined : pairs[first]
  if (!pair) return 'no difference'
  const { left, right, differs } = pair
  const step = right ?? left
  return `first difference: ${step?.type === 'turn' ? `turn ${step.n}` : 'a message'} (${differs.join(', ')})`
}

function exitOf({ settled }: WhatIf): number {
  if (settled === null) return EXIT.waits
  if (settled.type === 'completed') return EXIT.ok
  if (settled.type === 'limit') return EXIT.limit
  return settled.type === 'interrupted' ? EXIT.interrupted : EXIT.failed
}
