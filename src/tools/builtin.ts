// The built-in tools by name: which of them an agent gets. What they do stands elsewhere. The shell is never among
// them: add `bashTool` by hand.
import { Fault } from '../kernel/failure.ts'
import { askUserTool } from './ask-user.ts'
import { listCheck, optionsChecker, textCheck, optionsCheck } from '../options.ts'
import { FETCH_OPTIONS, webFetchTool, type WebFetchOptions } from './web/web-fetch.ts'
import { FILE_OPTIONS, type FileToolsOptions, fileTools } from './files/file-tools.ts'
import { jsonlSearchTool } from './jsonl/jsonl-search.ts'
import { parallelCheck, type ParallelLlmOptions, parallelLlmTool } from './agents/parallel-llm.ts'
import { SKILLS_OF, type SkillOptions, skillTools } from './skills/skills.ts'
import { extractTool } from './core/extract-tool.ts'
import type { Tool } from './core/tool.ts'

const FILES = ['read', 'write', 'edit', 'search', 'list', 'glob'] as const
const SKILLS = ['skill_read', 'skill_run'] as const
const OTHERS = ['jsonl_search', 'ask_user', 'web_fetch', 'extract_from_result', 'parallel_llm'] as const
const ALL: readonly string[] = [...FILES, ...SKILLS, ...OTHERS]

/** The names of the tools that `builtInTools` can make. */
export type BuiltInName = (typeof FILES)[number] | (typeof SKILLS)[number] | (typeof OTHERS)[number]

/** Options of `builtInTools`: the folder they work in, which tools, and what they may reach. */
export type BuiltInOptions = FileToolsOptions & {
  /** Absent: the six file tools. Empty: none. */
  readonly names?: readonly BuiltInName[]
  /** For `skill_read` and `skill_run`. */
  readonly skills?: Omit<SkillOptions, 'workspace' | 'folder'> & { readonly folders: readonly string[] }
  /** For `parallel_llm`. */
  readonly parallel?: Pick<ParallelLlmOptions, 'model' | 'promptsMax' | 'attemptsMax' | 'output' | 'outputRetries'>
  /** For `web_fetch`. */
  readonly fetch?: WebFetchOptions
}

const checkOptions = optionsChecker<BuiltInOptions>('builtInTools', {
  ...FILE_OPTIONS,
  names: listCheck(textCheck),
  skills: optionsCheck<NonNullable<BuiltInOptions['skills']>>(SKILLS_OF),
  parallel: parallelCheck,
  fetch: optionsCheck<WebFetchOptions>(FETCH_OPTIONS),
})

/** Returns the tools in the order of `names`. An unknown name, a repeated name or missing settings are a Fault. */
export async function builtInTools(options: BuiltInOptions): Promise<readonly Tool[]> {
  checkOptions(options)
  const { names = FILES, skills, parallel, fetch, ...files } = options
  checkNames(names)
  const wanted = new Set<string>(names)
  const made: Tool[] = [...fileTools(files), jsonlSearchTool(files), askUserTool(), webFetchTool(fetch ?? {})]
  made.push(extractTool())
  if (wanted.has('parallel_llm')) {
    if (!parallel) throw missingSetting('parallel_llm', 'parallel: { model }')
    made.push(parallelLlmTool({ ...files, ...parallel }))
  }
  if (SKILLS.some((name) => wanted.has(name))) {
    if (!skills) throw missingSetting('skill_read', 'skills: { folders }')
    made.push(...(await skillTools({ ...skills, workspace: options.root })))
  }
  return names.flatMap((name) => made.filter((tool) => tool.name === name))
}

function checkNames(names: readonly string[]): void {
  const unknown = names.find((name) => !ALL.includes(name))
  if (unknown !== undefined) {
    const hint = unknown === 'bash' ? 'Add bashTool({ workspace }) by hand.' : `Known are: ${ALL.join(', ')}.`
    throw new Fault('invalid_config', `"${unknown}" is no built-in tool. ${hint}`)
  }
  const twice = names.find((name, i) => names.indexOf(name) !== i)
  if (twice !== undefined) throw new Fault('invalid_config', `The built-in tool "${twice}" is named twice.`)
}

function missingSetting(name: string, setting: string): Fault {
  return new Fault('invalid_config', `The built-in tool "${name}" needs a setting: ${setting}.`)
}
