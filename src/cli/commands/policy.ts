// `terret policy`: what may run here, what is asked and what is denied; and what would become of one call.
import { describeRule, judge, type Tool } from '../../index.ts'
import type { Json } from '../../kernel/index.ts'
import { approvalOf, toolNamed } from '../agent.ts'
import type { Call } from '../args.ts'
import { oneLine } from '../clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { homeOf, realFolder } from '../home.ts'
import { print, printJson, warn } from '../print.ts'
import { DEFAULT_TOOLS, type Setup, setupFor } from '../setup.ts'

export async function policy(call: Call): Promise<number> {
  const setup = await setupFor(homeOf(), realFolder(process.cwd()), {
    mode: call.text('mode'),
    onAsk: call.text('on-ask'),
  })
  const [verb, tool, args] = call.words
  if (verb === undefined) return show(call, setup)
  if (verb !== 'test' || tool === undefined)
    throw new Refusal(EXIT.usage, 'Say it like this: terret policy test TOOL JSON')
  return test(call, setup, await toolNamed(setup, tool), argsIn(args ?? '{}'))
}

function show(call: Call, { mode, policy: rules, settings, trusted, notes, folder }: Setup): number {
  const { tools = DEFAULT_TOOLS, bash, mcp } = settings
  if (call.is('json')) {
    printJson({ folder, trusted, mode, tools, bash: Boolean(bash), mcp: Object.keys(mcp ?? {}), policy: rules })
    return EXIT.ok
  }
  for (const note of notes) warn(oneLine(note, 600))
  print(`Mode      ${mode}: ${MODE_TEXT[mode]}`)
  print(`Tools     ${[...tools, ...(bash ? ['bash'] : [])].join(', ')}`)
  if (mcp)
    print(
      `Servers   ${Object.keys(mcp)
        .map((name) => oneLine(name))
        .join(', ')}`,
    )
  print(`Questions ${rules.onAsk === 'deny' ? 'count as a no' : 'wait for a person'}`)
  for (const rule of rules.rules) print(`Rule      ${oneLine(describeRule(rule), 600)}`)
  if (rules.rules.length === 0) print('Rules     none')
  return EXIT.ok
}

const MODE_TEXT = {
  plan: 'only what changes nothing can be used',
  ask: 'reads run; writes are asked once a run; bash, web_fetch, skill_run and MCP tools each time',
  auto: 'each tool asks as it thinks right',
} as const

const EXITS = { allow: EXIT.ok, ask: EXIT.waits, deny: EXIT.failed } as const

async function test(call: Call, { policy: rules }: Setup, tool: Tool, args: Json): Promise<number> {
  const approval = await approvalOf(tool, args)
  const judged = judge(rules, { tool: tool.name, args, approval, effect: tool.effect })
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
    throw new Refusal(EXIT.usage, `The arguments are no valid JSON: ${why}.`)
  }
}
