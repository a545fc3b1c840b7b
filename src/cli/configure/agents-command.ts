// `terret agents`: the agents that can be used in this folder; for one agent, its whole definition with the prompt. It
// runs none.
import type { AgentDefinition } from '../../agents/index.ts'
import type { CommandArgs } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { print, printJson, terretCommand, warn } from '../present/print.ts'
import { agentsFolder, findDefinition, loadDefinitions } from '../state/defined-agents.ts'
import { readSetupHere } from '../state/folder-setup.ts'

export async function agentsCommand(call: CommandArgs): Promise<number> {
  const [verb, id] = call.words
  if (verb !== undefined && (verb !== 'show' || id === undefined))
    throw new CliError(EXIT.usage, 'Usage: terret agents, or terret agents show ID')
  const setup = await readSetupHere()
  const { chosenModel, promptOf } = await import('../../agents/index.ts')
  const { definitions, troubles } = await loadDefinitions(setup)
  for (const text of troubles) warn(oneLine(text, 600))
  const modelOf = (each: AgentDefinition): string =>
    chosenModel(each, definitions, setup.settings.agents ?? {}) ?? 'inherit'
  if (id !== undefined) {
    const { lines: _lines, prompt, ...found } = findDefinition(definitions, id)
    const whole = { ...found, model: modelOf(findDefinition(definitions, id)) }
    if (call.is('json')) printJson({ ...whole, prompt })
    else print(...definitionLines(whole, promptOf(findDefinition(definitions, id))))
    return EXIT.ok
  }
  for (const each of definitions) {
    const { id: name, tier, tools, layer, file, whenToUse } = each
    const model = modelOf(each)
    if (call.is('json')) printJson({ id: name, tier, model, tools, layer, file, whenToUse })
    else print(agentRow([name, tier, model, toolsText(tools), layer], whenToUse))
  }
  if (!call.is('json'))
    warn(`Your own are files in ${oneLine(agentsFolder(setup), 300)}: ${terretCommand`agents show ID`} prints one.`)
  return EXIT.ok
}

const WIDTHS = [18, 9, 18, 8, 9] as const

function agentRow(cells: readonly string[], whenToUse: string): string {
  const shown = cells.map((cell, i) => oneLine(cell, 40).padEnd(WIDTHS[i] ?? 0))
  return `${shown.join('  ')}  ${oneLine(whenToUse, 120)}`
}

function toolsText(tools: AgentDefinition['tools']): string {
  return tools === 'all' ? 'all' : `${tools.length} tools`
}

function definitionLines(fields: object, prompt: string): readonly string[] {
  const rows = Object.entries(fields).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return `${name.padEnd(16)}  ${oneLine(text, 600)}`
  })
  return [...rows, '', ...prompt.split('\n')]
}
