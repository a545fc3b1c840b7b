// `terret tools`: the tools that an agent has in this folder, with what each may do and whether it is asked about. It runs none.
import type { Tool } from '../../index.ts'
import type { Call } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, Refusal } from '../exit.ts'
import { print, printJson } from '../present/print.ts'
import { offeredTools, serverTools } from '../state/offered.ts'
import { setupHere } from '../state/setup.ts'
import { wishesOf } from '../state/work.ts'

export async function tools(call: Call): Promise<number> {
  const setup = await setupHere(wishesOf(call))
  const all = [...(await offeredTools(setup)), ...(call.is('no-mcp') ? [] : await serverTools(setup))]
  const [name] = call.words
  const chosen = name === undefined ? all : all.filter((tool) => tool.name === name)
  if (chosen.length === 0 && name !== undefined) {
    const hint = call.is('no-mcp') ? ' Without --no-mcp those of the MCP servers are listed too.' : ''
    throw new Refusal(EXIT.missing, `There is no tool "${name}" here.${hint}`)
  }
  const width = Math.max(NAME_COLUMNS_MIN, ...chosen.map((tool) => oneLine(tool.name).length))
  for (const tool of chosen) {
    const row = await rowOf(tool)
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
async function rowOf(tool: Tool) {
  const { name, description, parameters, effect, kind = 'user', mcp, sequential } = tool
  const approval = tool.byArguments ? 'by arguments' : await tool.approval({})
  const risky = effect !== 'read' || approval !== 'auto'
  const from = mcp ? { mcp } : {}
  return { name, description, effect, approval, risky, kind, ...from, sequential: sequential !== false, parameters }
}
