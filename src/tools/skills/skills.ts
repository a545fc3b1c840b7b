// Makes the skill tools together: `skill_read` and `skill_run` for the skills of some folders. The folders are
// configuration by a person. The model reads their texts, and a script runs only when `skill_run` is called for it.
import { realpathSync } from 'node:fs'
import { Fault } from '../../kernel/failure.ts'
import { nonEmptyCheck, listCheck, requiredCheck, optionsChecker } from '../../options.ts'
import { CONFINED_OPTIONS, type ConfinedOptions } from '../shell/run-confined.ts'
import { findSkills, containsWorkspace } from './find-skills.ts'
import { skillReadTool } from './skill-read.ts'
import { skillRunTool } from './skill-run.ts'
import type { Tool } from '../core/tool.ts'

/** Options of `skillTools`: the folders, and which of the skills in them. */
export type SkillOptions = ConfinedOptions & {
  /** Names of the skills to offer. Missing: all. Empty: none. */
  readonly selected?: readonly string[]
} & (
    | { readonly folder: string; readonly folders?: undefined }
    | { readonly folders: readonly string[]; readonly folder?: undefined }
  )

const { workspace, ...PLACE } = CONFINED_OPTIONS
const selected = listCheck(nonEmptyCheck)
export const SKILLS_OF = { ...PLACE, selected, folders: requiredCheck(listCheck(nonEmptyCheck)) }
const checkOptions = optionsChecker<SkillOptions>('skillTools', {
  ...PLACE,
  workspace,
  selected,
  folder: nonEmptyCheck,
  folders: listCheck(nonEmptyCheck),
})

/** Without any skill there is no tool. Rejects with a Fault if a skill is invalid, missing or duplicated. */
export async function skillTools(options: SkillOptions): Promise<readonly Tool[]> {
  checkOptions(options)
  const { folder, folders = folder === undefined ? [] : [folder] } = options
  const skills = await findSkills(folders, options.selected ?? null)
  if (skills.length === 0) return []
  const workspace = realpathSync(options.workspace)
  const around = skills.find((skill) => containsWorkspace(skill, workspace))
  if (around) {
    const text = `The workspace ${workspace} lies in the folder of the skill "${around.name}". Keep skills in folders of their own.`
    throw new Fault('invalid_config', text)
  }
  return [skillReadTool(skills), skillRunTool(skills, options)]
}
