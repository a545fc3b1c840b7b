// `terret policy`: the rules that apply here, and the verdict on one call.
import { describeRule, judgeCall, type Tool } from '../../index.ts'
import type { Json } from '../../kernel/index.ts'
import { approvalOf } from '../state/agent.ts'
import type { Call } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { forgetRule } from '../state/kept.ts'
import { offeredTools, toolNamed } from '../state/offered.ts'
import { print, printJson, warn } from '../present/print.ts'
import { type Setup, setupHere } from '../state/setup.ts'
import { wishesOf } from '../state/work.ts'

export async function policy(call: Call): Promise<number> {
  const setup = await setupHere(wishesOf(call))
  const [verb, word, args] = call.words
  if (verb === undefined) return show(call, setup)
  if (verb === 'forget' && word !== undefined && args === undefined) return forget(call, setup, word)
  if (verb !== 'test' || word === undefined)
    throw new Refusal(EXIT.usage, 'Unknown subcommand. Usage: terret policy test TOOL JSON, or: terret policy forget N')
  return test(call, setup, await toolNamed(setup, word), argsIn(args ?? '{}'))
}

function forget(call: Call, { home, folder }: Setup, word: string): number {
  const { rule } = forgetRule(home, folder, Number(word))
  if (call.is('json')) printJson({ folder, forgotten: rule })
  else print(`Forgotten: ${oneLine(describeRule(rule), 600)}`)
  return EXIT.ok
}

async function show(call: Call, setup: Setup): Promise<number> {
  const { mode, policy: rules, kept, settings, trusted, notes, folder } = setup
  const { bash, mcp, environment } = settings
  const tools = (await offeredTools(setup)).map(({ name }) => name)
  if (call.is('json')) {
    const servers = Object.keys(mcp ?? {})
    const place = { folder, trusted, mode, environment: environment ?? null }
    printJson({ ...place, tools, bash: Boolean(bash), mcp: servers, policy: rules, kept })
    return EXIT.ok
  }
  for (const note of notes) warn(oneLine(note, 600))
  print(`Mode      ${mode}: ${MODE_TEXT[mode]}`)
  if (environment) print(`Place     ${oneLine(environment)}`)
  print(`Tools     ${tools.join(', ')}`)
  if (mcp)
    print(
      `Servers   ${Object.keys(mcp)
        .map((name) => oneLine(name))
        .join(', ')}`,
    )
  print(`Questions ${rules.onAsk === 'deny' ? 'count as a no' : 'wait for a person'}`)
  for (const root of rules.writeRoots ?? []) print(`Writes in ${oneLine(root, 400)}`)
  if (rules.writeRoots?.length === 0) print('Writes in nothing')
  if (rules.actionsPerHour !== undefined) print(`Changes   at most ${rules.actionsPerHour} an hour`)
  if (rules.asksPerHour !== undefined) print(`Asks      at most ${rules.asksPerHour} an hour`)
  const own = rules.rules.filter((rule) => !kept.some((each) => each.rule === rule))
  for (const rule of own) print(`Rule      ${oneLine(describeRule(rule), 600)}`)
  for (const [i, { rule, by }] of kept.entries())
    print(`Kept ${i + 1}    ${oneLine(describeRule(rule), 600)} (${oneLine(by)})`)
  if (rules.rules.length === 0) print('Rules     none')
  return EXIT.ok
}

const MODE_TEXT = {
  plan: 'only what changes nothing can be used',
  ask: 'reads run; writes are asked once a run; bash, web_fetch, skill_run, MCP tools and files of parallel_llm each time',
  auto: 'each tool asks as it thinks right',
} as const

const EXITS = { allow: EXIT.ok, ask: EXIT.waits, deny: EXIT.failed } as const

async function test(call: Call, { policy: rules, settings }: Setup, tool: Tool, args: Json): Promise<number> {
  const approval = await approvalOf(tool, args)
  const { environment } = settings
  const { root, effect } = tool
  const where = { ...(environment ? { environment } : {}), ...(root === undefined ? {} : { root }) }
  const action = { tool: tool.name, args, approval, effect, ...where }
  const judged = await judgeCall(rules, action)
  const reason = judged.type === 'deny' ? judged.reason : null
  if (call.is('json')) printJson({ tool: tool.name, args, verdict: judged.type, reason })
  else print(reason === null ? judged.type : `deny: ${oneLine(reason, 600)}`)
  return EXITS[judged.type]
}

function argsIn(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Refusal(EXIT.usage, `The arguments are not valid JSON: ${why}.`)
  }
}
