// `terret tools`: the tools of an agent in this folder, with their effect and approval. It runs none.
import type { Tool } from '../../index.ts'
import type { CommandArgs } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { print, printJson } from '../present/print.ts'
import { offeredTools, serverTools } from '../state/folder-tools.ts'
import { readSetupHere } from '../state/folder-setup.ts'
import { setupFlagsOf } from '../state/drive-session.ts'

export async function toolsCommand(call: CommandArgs): Promise<number> {
  const setup = await readSetupHere(setupFlagsOf(call))
  const all = [...(await offeredTools(setup)), ...(call.is('no-mcp') ? [] : await serverTools(setup))]
  const [name] = call.words
  const chosen = name === undefined ? all : all.filter((tool) => tool.name === name)
  if (chosen.length === 0 && name !== undefined) {
    const hint = call.is('no-mcp') ? ' Without --no-mcp those of the MCP servers are listed too.' : ''
    throw new CliError(EXIT.missing, `There is no tool "${name}" here.${hint}`)
  }
  const width = Math.max(NAME_COLUMNS_MIN, ...chosen.map((tool) => oneLine(tool.name).length))
  for (const tool of chosen) {
    const row = await toolRow(tool)
    if (call.is('json')) printJson(row)
    else
      print(
        `${oneLine(row.name).padEnd(width)}  ${row.effect.padEnd(10)}  ${row.approval.padEnd(12)}  ${oneLine(row.description, 100)}`,
      )
    if (name !== undefined && !call.is('json')) print(...JSON.stringify(row.parameters, null, 2).split('\n'))
  }
  return EXIT.ok
}

const NAME_COLUMNS_MIN = 16

/** `risky`: it may change something, or a person may be asked about it. */
async function toolRow(tool: Tool) {
  const { name, description, parameters, effect, kind = 'user', mcp, sequential } = tool
  const approval = tool.byArguments ? 'by arguments' : await tool.approval({})
  const risky = effect !== 'read' || approval !== 'auto'
  const from = mcp ? { mcp } : {}
  return { name, description, effect, approval, risky, kind, ...from, sequential: sequential !== false, parameters }
}
