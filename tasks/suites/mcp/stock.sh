# A stock of goods as a server of the Model Context Protocol, in plain sh. STOCK has the goods, such as `apple=12 pear=7`.
between() { # TEXT BEFORE: what follows BEFORE in TEXT, up to a comma, a brace or a quote
    rest=${1#*"$2"}
    found=${rest%%[,\}\"]*}
}
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
say() { answer "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}],\"isError\":$2}"; }
for entry in $STOCK; do eval "stock_${entry%%=*}=${entry#*=}"; done
item='"item":{"type":"string","description":"The goods."}'
count='"count":{"type":"integer","description":"How many of them."}'
tools="{\"name\":\"stock\",\"description\":\"Tells how many of some goods there are.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{$item},\"required\":[\"item\"]}},{\"name\":\"take\",\"description\":\"Takes goods out of the stock, and tells how many are left.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{$item,$count},\"required\":[\"item\",\"count\"]}}"
while IFS= read -r line; do
    case $line in *'"id":'*) ;; *) continue ;; esac # what asks nothing is not answered
    between "$line" '"id":'
    id=$found
    case $line in
    *'"method":"initialize"'*)
        answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"stock","version":"1"}}'
        ;;
    *'"method":"tools/list"'*) answer "{\"tools\":[$tools]}" ;;
    *'"method":"tools/call"'*)
        between "$line" '"item":"'
        item=$found
        # Whatever is no single name is not looked at: `apple=1 pear` stands in STOCK as well.
        case $item in '' | *[!a-z]*) item=- ;; esac
        case " $STOCK" in *" $item="*) ;; *)
            say 'There are no such goods.' true
            continue
            ;;
        esac
        eval "have=\$stock_$item"
        case $line in
        *'"name":"take"'*)
            between "$line" '"count":'
            case $found in '' | *[!0-9]* | ??????*)
                say 'How many? A count has up to five digits.' true
                continue
                ;;
            esac
            if [ "$found" -gt "$have" ]; then
                say "There are only $have." true
                continue
            fi
            have=$((have - found))
            eval "stock_$item=$have"
            say "$have left" false
            ;;
        *) say "$have" false ;;
        esac
        ;;
    *) answer '{}' ;;
    esac
done
