// The section of the changelog that belongs to a release. It reads text only: release-notes.ts prints it.

/** Throws with a sentence for the person who made the tag. */
export function changesOf(changelog: string, tag: string, version: string): string {
  if (tag !== `v${version}`)
    throw new Error(`The tag ${tag} is not v${version}, which is the version in package.json. Make them the same.`)
  const sections = changelog.split(/^(?=## )/m)
  const section = sections.find((each) => each.startsWith(`## [${version}]`))
  if (section === undefined)
    throw new Error(`CHANGELOG.md has no section "## [${version}]". Rename "## [Unreleased]" to it, with the date.`)
  if (section.split('\n').filter((line) => line.trim() !== '').length < 2)
    throw new Error(`The section "## [${version}]" of CHANGELOG.md is empty.`)
  return `${section.trim()}\n\n`
}
