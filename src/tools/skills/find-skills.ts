// Finds skills: SKILL.md files below the given folders, and the text files directly in them, with their own
// descriptions. It only reads. The folders are configuration: errors in them are reported at once, and no link is
// followed.
import { readdir, readFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import type { Frozen } from '../../kernel/content.ts'
import { Fault } from '../../kernel/failure.ts'
import { containsPath, type PathGuard, createPathGuard } from '../files/path-guard.ts'
import { FRONT_CHARS_MAX, splitFrontMatter } from './front-matter.ts'
import { oneLineText } from './skill-text.ts'
import { isObject } from '../../view/untrusted-json.ts'

export type Skill = Frozen<{
  name: string
  description: string
  /** The path of its text, from the folder it was found in. */
  source: string
  /** The path of its text, from its own folder. */
  file: string
  /** A single text file, without other files that belong to it. */
  alone: boolean
  /** A guard for its own folder only. */
  guarded: PathGuard
}>

const SKILL_FILE = 'SKILL.md'
const FOLDERS_MAX = 10_000
const SKILLS_MAX = 200
const NAME_CHARS_MAX = 64

/** `selected` missing: all. Empty: none. */
export async function findSkills(
  folders: readonly string[],
  selected: readonly string[] | null,
): Promise<readonly Skill[]> {
  if (selected?.length === 0) return []
  const roots = folders.map((folder) => createPathGuard({ root: folder, write: [] }).root)
  const found = (await Promise.all(roots.map(findSkillFiles))).flat()
  const known = new Map<string, Skill>()
  for (const one of found) {
    const skill = await readSkill(one)
    const twin = known.get(skill.name)
    if (twin) {
      const both = `${skillPath(twin)} and ${skillPath(skill)}`
      throw new Fault('invalid_config', `Two skills have the name "${skill.name}": ${both}. Rename one.`)
    }
    known.set(skill.name, skill)
  }
  const unknown = selected?.find((name) => !known.has(name))
  if (unknown !== undefined) {
    const names = [...known.keys()].toSorted().join(', ') || 'none'
    throw new Fault('invalid_config', `There is no skill "${unknown}" to select. The skills are: ${names}.`)
  }
  const chosen = [...known.values()].filter(({ name }) => selected === null || selected.includes(name))
  if (chosen.length > SKILLS_MAX) {
    const text = `There are ${chosen.length} skills; at most ${SKILLS_MAX} can be described to a model. Select some.`
    throw new Fault('invalid_config', text)
  }
  return chosen.toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function skillPath({ guarded, file }: Skill): string {
  return join(guarded.root, file)
}

type SkillFile = { readonly root: string; readonly folder: string; readonly file: string }

/** Returns files in no particular order. Hidden folders and those of packages are left out. */
async function findSkillFiles(root: string): Promise<readonly SkillFile[]> {
  const found: SkillFile[] = []
  const open = [root]
  for (let looked = 0; open.length > 0; looked++) {
    if (looked === FOLDERS_MAX) {
      throw new Fault(
        'invalid_config',
        `There are over ${FOLDERS_MAX} folders in ${root}. Name the one with the skills.`,
      )
    }
    const folder = open.pop() ?? root
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const { name } = entry
      if (entry.isDirectory() && !name.startsWith('.') && name !== 'node_modules') open.push(join(folder, name))
      const isText = name === SKILL_FILE || (folder === root && name.toLowerCase().endsWith('.md'))
      if (entry.isFile() && isText) found.push({ root, folder, file: name })
    }
  }
  return found
}

async function readSkill({ root, folder, file }: SkillFile): Promise<Skill> {
  const path = join(folder, file)
  const alone = file !== SKILL_FILE
  const { name, description } = await readFrontMatter(path)
  const fallback = alone ? file.replace(/\.md$/i, '') : basename(folder)
  const shown = oneLineText(name || fallback)
  if (shown === '' || shown.length > NAME_CHARS_MAX) {
    throw new Fault('invalid_config', `The name of the skill in ${path} must have 1 to ${NAME_CHARS_MAX} characters.`)
  }
  const source = oneLineText(relative(root, path))
  return { name: shown, description, source, file, alone, guarded: createPathGuard({ root: folder, write: [] }) }
}

type FrontMatter = { readonly name: string; readonly description: string }

/** Reads the front matter. Without it a text has no name and no description of its own. */
async function readFrontMatter(path: string): Promise<FrontMatter> {
  const bad = (why: string): Fault =>
    new Fault('invalid_config', `The front matter of ${path} is not valid: ${why}. Correct it, or remove the skill.`)
  const text = await readFile(path, 'utf8')
  const parts = splitFrontMatter(text, FRONT_CHARS_MAX)
  if (parts === 'none') return { name: '', description: '' }
  if (parts === 'open') throw bad(`no line "---" ends it within ${FRONT_CHARS_MAX} characters`)
  const { front } = parts
  // Loaded only here: it is large, and most harnesses have no skills.
  const { parse } = await import('yaml')
  let value: unknown
  try {
    // All scalars are text: a skill may be named 2024, or off.
    value = parse(front, { schema: 'failsafe', logLevel: 'error' }) ?? {}
  } catch (error) {
    throw bad(error instanceof Error ? (error.message.split('\n')[0] ?? '').replace(/:$/, '') : 'it is no YAML')
  }
  if (!isObject(value)) throw bad('it must be "name: …" lines')
  const [name, description] = ['name', 'description'].map((key) => {
    const said = (value as Readonly<Record<string, unknown>>)[key] ?? ''
    if (typeof said !== 'string') throw bad(`"${key}" must be text`)
    return said
  })
  return { name: name ?? '', description: oneLineText(description ?? '') }
}

/** Does the skill's folder, which is mounted read-only, contain the workspace? */
export function containsWorkspace({ guarded, alone }: Skill, workspace: string): boolean {
  return !alone && containsPath(guarded.root, workspace)
}
