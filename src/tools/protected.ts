// What no tool and no command may change: files that somebody's shell, editor, git or harness runs or obeys unasked.
// Only the list. The file tools enforce it by name (paths.ts), the sandbox by mounts (sandbox.ts).

/** Names, and runs of names, at any depth. */
// biome-ignore format: names of a kind share a line
export const PROTECTED: readonly string[] = [
  '.gitconfig', '.gitmodules', '.config/git', '.githooks', '.husky', '.vscode', '.idea', '.npmrc', '.envrc', '.ssh',
  '.mcp.json', '.terret', 'terret.json', '.config/terret', '.local/share/terret', 'Library/Application Support/terret',
  '.bashrc', '.bash_profile', '.bash_login', '.bash_logout', '.bash_aliases', '.profile',
  '.zshrc', '.zshenv', '.zprofile', '.zlogin', '.zlogout', '.config/fish',
  '.config/autostart', '.config/systemd', 'Library/LaunchAgents',
]

/**
 * In every folder that git takes for a repository. `git add` and `git commit` must write `index` and the like, so for commands only
 * what names programs to run, or another place to read such names from, is closed. The file tools have no business in `.git` at all.
 */
export const OBEYED_BY_GIT: readonly string[] = ['hooks', 'config', 'config.worktree', 'commondir', 'info/attributes']

/** What git takes for a repository, by the names that are in the folder. A worktree's has no objects of its own. */
export function isGitFolder(has: (name: string) => boolean): boolean {
  return has('HEAD') && (has('objects') || has('commondir'))
}
