// The files that no tool and no command may change: a shell, an editor, git or the harness runs or obeys them unasked.
// This is only the list. The file tools enforce it by name (path-guard.ts), the sandbox by mounts (sandbox.ts).

/** Names and partial paths, at any depth. */
export const PROTECTED: readonly string[] = [
  // Terret, and other harnesses whose settings name programs.
  ...splitWords('.mcp.json .terret terret.json .config/terret .local/share/terret .claude .codex .cursor .gemini'),
  'Library/Application Support/terret',
  // Read when a person commits, or when a prompt shows the state of a repository.
  ...splitWords(`
    .gitconfig .gitmodules .config/git .githooks .husky .pre-commit-config.yaml .overcommit.yml lefthook.yml
    .lefthook.yml lefthook.yaml .lefthook.yaml lefthook.toml lefthook.json lefthook-local.yml .lefthook .hgrc
    .hg/hgrc .jjconfig.toml .config/jj
  `),
  // Read when a person opens a folder in an editor, or starts an editor.
  ...splitWords(`
    .vscode .idea .zed .fleet .helix .config/helix .devcontainer .devcontainer.json .dir-locals.el
    .dir-locals-2.el .emacs .emacs.d .config/emacs .exrc .vim .vimrc .gvimrc .nvimrc .nvim.lua .config/nvim
    .kakrc .config/kak
  `),
  // Read when a person enters a folder, or uses a tool whose version or home is set there.
  ...splitWords(`
    .envrc .config/direnv .mise .mise.toml mise.toml .mise.local.toml mise.local.toml .config/mise .rtx.toml
    .tool-versions .asdfrc .rvmrc .autoenv .autoenv.zsh
  `),
  // Read when a person opens a shell or a terminal, or each time a prompt is shown.
  ...splitWords(`
    .bashrc .bashrc.d .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .profile .zshrc
    .zshenv .zprofile .zlogin .zlogout .oh-my-zsh .p10k.zsh .config/zsh .config/fish .cshrc .tcshrc .login
    .logout .kshrc .mkshrc .shrc .shinit .yashrc .yash_profile .config/nushell .elvish .config/elvish .xonshrc
    .config/xonsh .config/powershell Documents/PowerShell Documents/WindowsPowerShell .inputrc
    .config/starship.toml .tmux.conf .config/tmux .screenrc .config/alacritty .config/kitty .wezterm.lua
    .config/wezterm
  `),
  // Read when a person logs in.
  ...splitWords(`
    .xprofile .xsession .xsessionrc .xinitrc .xserverrc .xclients .pam_environment .config/environment.d
    .config/plasma-workspace .config/autostart .config/systemd .local/share/systemd .local/share/dbus-1
    .config/i3 .i3 .config/sway .config/hypr Library/LaunchAgents
  `),
  // Read by programs when a person starts them.
  ...splitWords(`
    .npmrc .yarnrc .yarnrc.yml .curlrc .wgetrc .ssh .gnupg .aws/config .aws/credentials .kube/config
    .docker/config.json .docker/cli-plugins .mailcap .lessfilter .psqlrc .sqliterc .gdbinit .lldbinit .pdbrc
    .irbrc .pryrc .Rprofile .Renviron .iex.exs .ghci .octaverc .julia/config
  `),
]

export function splitWords(list: string): readonly string[] {
  return list.trim().split(/\s+/)
}

/**
 * Files that Terret and similar agents obey: instructions and keys. Names, at any depth. A person is asked before each
 * change by a file tool; a command that no person allowed cannot change them either.
 */
export const OBEYED: readonly string[] = splitWords(
  'AGENTS.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md .env',
)

/**
 * Paths in every folder that git treats as a repository. `git add` and `git commit` must write `index` and the like, so
 * commands are only kept from files that name programs to run, or name other places to read them from. The file tools
 * never write in `.git` at all.
 */
export const OBEYED_BY_GIT: readonly string[] = ['hooks', 'config', 'config.worktree', 'commondir', 'info/attributes']

/**
 * A path within the repository. `git rebase` must write it, so it is not closed: after a command it must not have new
 * lines that run a program.
 */
export const REBASE_ORDERS = 'rebase-merge/git-rebase-todo'

/**
 * Whether git treats a folder as a repository, by the names in it. The git folder of a worktree has no objects of its
 * own.
 */
export function isGitFolder(has: (name: string) => boolean): boolean {
  return has('HEAD') && (has('objects') || has('commondir'))
}
