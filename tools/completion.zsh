#compdef mayfly
# zsh completion for mayfly: the bash one does the work.
autoload -U +X bashcompinit && bashcompinit
source "${0:A:h}/../../bash-completion/completions/mayfly" 2> /dev/null
_bash_complete -o filenames -F _mayfly
