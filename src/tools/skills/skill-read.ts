// The tool `skill_read`: reads the text of a skill, or another file of it, page by page. It changes nothing and runs
// nothing.
import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { CONTENT_CHARS_MAX, clip } from '../core/bound-content.ts'
import { readFileAt } from '../files/guarded-disk.ts'
import { removeInvisible } from '../../view/invisible.ts'
import { output, ToolFailure } from '../core/tool-output.ts'
import { isListable, locateForCall, type GuardedPath, PATH_ALIASES } from '../files/path-guard.ts'
import { type Infer, integerField, objectField, optionalField, textField } from '../core/argument-schema.ts'
import type { Skill } from './find-skills.ts'
import { skillSummary } from './skill-text.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'

const FILES_MAX = 200
const FOLDERS_MAX = 200

const input = objectField({
  name: textField('The name of the skill.', { min: 1 }),
  path: optionalField(
    textField("Another file of the skill, from the skill's folder. Without it: the skill's own text.", { min: 1 }),
  ),
  offset: optionalField(integerField('Where to read on, as the last answer said.', { min: 0 })),
})
type Args = Infer<typeof input>

export function skillReadTool(skills: readonly Skill[]): Tool {
  const tool = defineTool({
    name: 'skill_read',
    description: 'Reads a skill: its instructions and the list of its files, or one of those files.',
    input,
    aliases: { ...PATH_ALIASES, skill: 'name', skill_name: 'name' },
    effect: 'read',
    instructions: skillSummary(skills),
    execute: (args, context) => readSkillPage(findSkill(skills, args.name), args, context),
  })
  return { ...tool, filtered: filteredTool(skills, skillReadTool) }
}

/** Makes the tool again for the skills with the given names. */
export function filteredTool(skills: readonly Skill[], make: (some: readonly Skill[]) => Tool): Tool['filtered'] & {} {
  return (names) => {
    const some = skills.filter(({ name }) => names.includes(name))
    return some.length === 0 ? null : make(some)
  }
}

export function findSkill(skills: readonly Skill[], name: string): Skill {
  const skill = skills.find((one) => one.name === name)
  if (skill) return skill
  const names = clip(skills.map((one) => one.name).join(', '), 2000)
  throw new ToolFailure('NotFound', `There is no skill "${clip(name, 64)}". The skills are: ${names}.`)
}

/** Locates a file of the skill in its folder, with every link resolved. */
export function locateSkillFile(
  { guarded, alone, file, name }: Skill,
  path: string,
  context: ToolContext,
): Promise<GuardedPath> {
  if (alone && path !== file) {
    throw new ToolFailure('NotFound', `The skill "${name}" is the single file "${file}"; there is no "${path}".`)
  }
  return locateForCall(guarded, path, 'read', context)
}

async function readSkillPage(skill: Skill, { path = skill.file, offset = 0 }: Args, context: ToolContext) {
  const place = await locateSkillFile(skill, path, context)
  const { bytes, hash } = await readFileAt(skill.guarded, place)
  if (bytes.subarray(0, 8000).includes(0)) {
    const message = `"${place.shown}" is a binary file of ${bytes.length} bytes; skill_read shows text only.`
    throw new ToolFailure('InvalidInput', message)
  }
  const { text: whole, removed } = removeInvisible(context.redact(bytes.toString()))
  if (offset > whole.length) {
    throw new ToolFailure(
      'InvalidInput',
      `"${place.shown}" has ${whole.length} characters; there is no offset ${offset}.`,
    )
  }
  const page = cutPage(whole, offset)
  const next = offset + page.length
  const more = next < whole.length
  const notes = [
    ...(more ? [`characters ${offset} to ${next} of ${whole.length}; read on with offset ${next}`] : []),
    ...(removed > 0 ? [`${removed} invisible characters are left out`] : []),
    ...(path === skill.file && offset === 0 ? [await filesText(skill, context)] : []),
  ]
  const metadata = { skill: skill.name, path: place.shown, bytes: bytes.length, hash }
  const on = more ? { truncated: true, next_offset: next } : {}
  const said = notes.map((note) => `(${note})`)
  return output({ content: [page, ...said].join('\n'), metadata: { ...metadata, ...on } })
}

/** The page ends at a line end if possible. */
function cutPage(whole: string, offset: number): string {
  const part = clip(whole.slice(offset), CONTENT_CHARS_MAX)
  const line = part.lastIndexOf('\n')
  return part.length < whole.length - offset && line > CONTENT_CHARS_MAX / 2 ? part.slice(0, line + 1) : part
}

async function filesText(skill: Skill, context: ToolContext): Promise<string> {
  if (skill.alone) return 'this skill has no other files'
  const { files, more } = await listSkillFiles(skill.guarded.root)
  const shown = files.filter((file) => file !== skill.file && isListable(join(skill.guarded.root, file), context))
  const others = shown.map((file) => JSON.stringify(removeInvisible(file).text))
  if (others.length === 0) return 'this skill has no other files'
  return `files of this skill: ${others.join(', ')}${more ? ', and more' : ''}`
}

/** Links are not followed: their targets are not part of the skill. */
async function listSkillFiles(root: string): Promise<{ readonly files: readonly string[]; readonly more: boolean }> {
  const files: string[] = []
  const open = [root]
  for (let looked = 0; open.length > 0; looked++) {
    if (looked === FOLDERS_MAX) return { files: files.toSorted(), more: true }
    const folder = open.shift() ?? root
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules') open.push(path)
      if (!entry.isFile()) continue
      if (files.length === FILES_MAX) return { files: files.toSorted(), more: true }
      files.push(relative(root, path))
    }
  }
  return { files: files.toSorted(), more: false }
}
