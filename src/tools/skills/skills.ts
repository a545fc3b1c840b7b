// The skill tools, made together: `skill_read` and `skill_run` for the skills of some folders. The folders are configuration that
// a person gave. What stands in them is told to the model, and a script runs only when `skill_run` is called for it.
import { realpathSync } from 'node:fs'
import { Fault } from '../../kernel/failure.ts'
import { filled, listOf, needed, optionsOf } from '../../options.ts'
import { CONFINED_OPTIONS, type ConfinedOptions } from '../shell/confined.ts'
import { findSkills, holds } from './find.ts'
import { skillReadTool } from './read.ts'
import { skillRunTool } from './run.ts'
import type { Tool } from '../core/tool.ts'

export type SkillOptions = ConfinedOptions & {
  /** Names of the skills to offer. Missing: all. Empty: none. */
  readonly selected?: readonly string[]
} & (
    | { readonly folder: string; readonly folders?: undefined }
    | { readonly folders: readonly string[]; readonly folder?: undefined }
  )

const { workspace, ...PLACE } = CONFINED_OPTIONS
const selected = listOf(filled)
export const SKILLS_OF = { ...PLACE, selected, folders: needed(listOf(filled)) }
const checkOptions = optionsOf<SkillOptions>('skillTools', {
  ...PLACE,
  workspace,
  selected,
  folder: filled,
  folders: listOf(filled),
})

/** Without any skill there is no tool. Rejects with a Fault if a skill is not valid, missing or there twice. */
export async function skillTools(options: SkillOptions): Promise<readonly Tool[]> {
  checkOptions(options)
  const { folder, folders = folder === undefined ? [] : [folder] } = options
  const skills = await findSkills(folders, options.selected ?? null)
  if (skills.length === 0) return []
  const workspace = realpathSync(options.workspace)
  const around = skills.find((skill) => holds(skill, workspace))
  if (around) {
    const text = `The workspace ${workspace} lies in the folder of the skill "${around.name}". Keep skills in folders of their own.`
    throw new Fault('invalid_config', text)
  }
  return [skillReadTool(skills), skillRunTool(skills, options)]
}
