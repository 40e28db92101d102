# bash completion for mayfly: verbs, their options (read from --help), and the names of shipped profiles and catalogues.
_mayfly() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]:-}
  case $previous in
    --predictor) COMPREPLY=($(compgen -W "queue spotdnn cynthia lambda additive" -- "$word")); return ;;
    --search) COMPREPLY=($(compgen -W "exact window exhaustive" -- "$word")); return ;;
    --market) COMPREPLY=($(compgen -W "spot on-demand serverless" -- "$word")); return ;;
    --sync) COMPREPLY=($(compgen -W "asp bsp" -- "$word")); return ;;
    --format) COMPREPLY=($(compgen -W "mayfly journal events counts parcae-replay parcae-choices gap-json dates zones gcloud aws-spot" -- "$word")); return ;;
    --polarity) COMPREPLY=($(compgen -W "available preempted" -- "$word")); return ;;
    --preset) COMPREPLY=($(compgen -W "p3 gcp-k80 gcp-v100 bathtub calm drought" -- "$word")); return ;;
    --method) COMPREPLY=($(compgen -W "all persistence average smoothing holt arima parcae weather" -- "$word")); return ;;
    --policy) COMPREPLY=($(compgen -W "on-demand checkpoint redundant template reactive persist liveput deadline ideal" -- "$word")); return ;;
    --compat) COMPREPLY=($(compgen -W "parcae bamboo" -- "$word")); return ;;
    --costs) COMPREPLY=($(compgen -W "released corrected" -- "$word")); return ;;
    --spares) COMPREPLY=($(compgen -W "cold warm" -- "$word")); return ;;
    --pipelines) COMPREPLY=($(compgen -W "even uneven" -- "$word")); return ;;
    --observation) COMPREPLY=($(compgen -W "held probe" -- "$word")); return ;;
    --out | --mayfly-out) COMPREPLY=($(compgen -d -- "$word")); return ;;
    --to) COMPREPLY=($(compgen -W "mayfly events counts" -- "$word")); return ;;
    --notices) COMPREPLY=($(compgen -W "auto aws gcp azure none" -- "$word")); return ;;
    --notice) COMPREPLY=($(compgen -W "aws gcp azure sigterm none" -- "$word")); return ;;
    --lose) COMPREPLY=($(compgen -W "half all server controller" -- "$word")); return ;;
    --role) COMPREPLY=($(compgen -W "worker server" -- "$word")); return ;;
    --interface) COMPREPLY=($(compgen -W "$(ls /sys/class/net 2> /dev/null)" -- "$word")); return ;;
    --profile | --catalog | --trace | --plan | --loss-log | -o | --output) COMPREPLY=($(compgen -f -- "$word")); return ;;
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "profile predict plan catalog trace replay backtest run resume status logs stop worker drill report dashboard torchrun check --help --version" -- "$word"))
  elif [ "$verb" = catalog ] && [ "$COMP_CWORD" -eq 2 ]; then
    COMPREPLY=($(compgen -W "list show import --help" -- "$word"))
  elif [ "$verb" = trace ] && [ "$COMP_CWORD" -eq 2 ]; then
    COMPREPLY=($(compgen -W "stats convert generate forecast --help" -- "$word"))
  elif [[ $word == -* ]]; then
    local action=()
    [[ $verb == catalog || $verb == trace ]] && action=("${COMP_WORDS[2]}")
    COMPREPLY=($(compgen -W "$(mayfly "$verb" "${action[@]}" --help 2> /dev/null | grep -oE -- '--[a-z-]+' | sort -u)" -- "$word"))
  elif [[ $verb == resume || $verb == status || $verb == logs || $verb == stop || $verb == drill || $verb == dashboard ]]; then
    COMPREPLY=($(compgen -d -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _mayfly mayfly
