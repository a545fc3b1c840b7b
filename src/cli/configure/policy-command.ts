// `terret policy`: the rules that apply here, and the verdict on one call.
import { describeRule, judgeCall, type Tool } from '../../index.ts'
import type { Json } from '../../kernel/index.ts'
import { approvalForCall } from '../state/folder-agent.ts'
import type { CommandArgs } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { forgetRule } from '../state/kept-rules.ts'
import { offeredTools, findOfferedTool } from '../state/folder-tools.ts'
import { print, printJson, warn } from '../present/print.ts'
import { type FolderSetup, readSetupHere } from '../state/folder-setup.ts'
import { setupFlagsOf } from '../state/drive-session.ts'

export async function policyCommand(call: CommandArgs): Promise<number> {
  const setup = await readSetupHere(setupFlagsOf(call))
  const [verb, word, args] = call.words
  if (verb === undefined) return showPolicy(call, setup)
  if (verb === 'forget' && word !== undefined && args === undefined) return forgetKeptRule(call, setup, word)
  if (verb !== 'test' || word === undefined)
    throw new CliError(
      EXIT.usage,
      'Unknown subcommand. Usage: terret policy test TOOL JSON, or: terret policy forget N',
    )
  return testCall(call, setup, await findOfferedTool(setup, word), parseArgsJson(args ?? '{}'))
}

export function forgetKeptRule(call: CommandArgs, { home, folder }: FolderSetup, word: string): number {
  const { rule } = forgetRule(home, folder, Number(word))
  if (call.is('json')) printJson({ folder, forgotten: rule })
  else print(`Forgotten: ${oneLine(describeRule(rule), 600)}`)
  return EXIT.ok
}

export async function showPolicy(call: CommandArgs, setup: FolderSetup): Promise<number> {
  const { mode, policy: rules, kept, settings, trusted, notes, folder } = setup
  const { bash, mcp, approvals: { environment } = {} } = settings
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

async function testCall(
  call: CommandArgs,
  { policy: rules, settings }: FolderSetup,
  tool: Tool,
  args: Json,
): Promise<number> {
  const approval = await approvalForCall(tool, args)
  const { environment } = settings.approvals ?? {}
  const { root, effect } = tool
  const where = { ...(environment ? { environment } : {}), ...(root === undefined ? {} : { root }) }
  const action = { tool: tool.name, args, approval, effect, ...where }
  const judged = await judgeCall(rules, action)
  const reason = judged.type === 'deny' ? judged.reason : null
  if (call.is('json')) printJson({ tool: tool.name, args, verdict: judged.type, reason })
  else print(reason === null ? judged.type : `deny: ${oneLine(reason, 600)}`)
  return EXITS[judged.type]
}

function parseArgsJson(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CliError(EXIT.usage, `The arguments are not valid JSON: ${why}.`)
  }
}
